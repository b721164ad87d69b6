// The page's side of the worker. hear(message) gets what it tells by itself; look() promises an answer.

/** source: the worker's script. */
export function createRunner(source, hear) {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url);
  const asked = new Map(); // key -> what waits for the answer
  let [count, run] = [0, 0];
  const waits = (key) => new Promise((resolve, reject) => asked.set(key, { resolve, reject }));
  const settle = (key, way, value) => {
    asked.get(key)?.[way](value);
    asked.delete(key);
  };

  worker.onmessage = ({ data }) => {
    if (data.did === "open") settle("open", "resolve", data.why);
    else if (data.did === "look") settle(data.key, "resolve", data.answer);
    else if (data.did === "fail" && asked.has(data.key ?? "open")) settle(data.key ?? "open", "reject", data);
    else if (data.did === "fail" || data.run === run) hear(data);
  };
  worker.onerror = ({ message }) => hear({ did: "fail", message });

  /** buffer, rope: of the model, or of each of several. */
  function open(buffer, rope, step) {
    worker.postMessage({ do: "open", buffer, rope, step }, [buffer, step].flat());
    return waits("open");
  }
  function look(what, place) {
    worker.postMessage({ do: "look", key: ++count, what, ...place });
    return waits(count);
  }
  const read = (ids, silenced, known) =>
    worker.postMessage({ do: "read", run: ++run, ids, silenced: [...silenced], known });
  return { open, read, look };
}
