// What the threads of all pages share: they answer one message after the other, and let in what has come meanwhile.

/**
 * Answer each message by the one of `doings` that it names; { did: "fail", key, message } tells that it failed. key:
 * that of the message, or null.
 */
export function answerWith(doings) {
  onmessage = async ({ data }) => {
    try {
      await doings[data.do](data);
    } catch (error) {
      postMessage({ did: "fail", key: data.key ?? null, message: String(error.message ?? error) });
    }
  };
}

/** breathe() lets messages in that are waiting. */
export function createBreath() {
  const channel = new MessageChannel();
  const waiting = [];
  channel.port1.onmessage = () => waiting.shift()();
  return () => new Promise((resolve) => (waiting.push(resolve), channel.port2.postMessage(0)));
}
