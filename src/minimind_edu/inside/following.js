// The state of a page in its address.

const ADDRESSED = 500; // milliseconds after a change until the address tells it: browsers allow few changes

/** This page with a state behind the # of its address. */
export const hereAs = (state) => new URL(`#${state}`, location.href).href;

/**
 * Let the address tell what is chosen, and choose what it tells. address(): what it tells of the session when
 * isSettled(); read(hash): what session.restore() takes, or null. start(text) begins with what the address tells, or
 * else with a text, and gives whether it told something; draw() is called after each drawing.
 */
export function followAddress(session, address, read, isSettled) {
  let [timer, written] = [0, ""];
  const write = () => {
    const now = isSettled() ? address() : written;
    if (now === written) return;
    written = now;
    try {
      history.replaceState(null, "", `#${now}`);
    } catch {
      // a browser that lets no file change its address
    }
  };
  const restore = () => {
    const found = read(location.hash.slice(1));
    if (found) session.restore(found);
    return Boolean(found);
  };
  const start = (text) => {
    const isTold = restore();
    if (!isTold) session.type(text);
    written = address();
    addEventListener("hashchange", restore);
    return isTold;
  };
  const draw = () => {
    clearTimeout(timer);
    if (written) timer = setTimeout(write, ADDRESSED);
  };
  return { start, draw };
}
