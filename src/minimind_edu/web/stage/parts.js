// The parts of a model that can be opened: { part, layer, head }, numbers from 0 on. No DOM.

/** Whether two of them are the same; null is none. */
export const isSamePart = (a, b) => a?.part === b?.part && a?.layer === b?.layer && a?.head === b?.head;

/**
 * The part of a name and its numbers, texts that count from `first` on; null if the model has none such. counts: name
 * -> how many there are of each number.
 */
export function partNamed([part, ...numbers], counts, first) {
  const most = Object.hasOwn(counts, part) ? counts[part] : null;
  const fits = (count, at) => /^\d{1,4}$/.test(numbers[at]) && numbers[at] >= first && numbers[at] - first < count;
  if (most?.length !== numbers.length || !most.every(fits)) return null;
  const [layer, head] = numbers.map((number) => number - first);
  return { part, layer, head };
}

/** Listeners of the button of a part: look(place) while the mouse or the focus is on it, look(null) afterwards. */
export function onLook(place, look) {
  const [enter, leave] = [() => look(place), () => look(null)];
  return { onPointerenter: enter, onPointerleave: leave, onFocus: enter, onBlur: leave };
}
