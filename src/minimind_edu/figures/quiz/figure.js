// A quiz: choose or type, check, read why. The first answer to each question is remembered; trying on is welcome.
import { h, fill, button, readout, wordsOf, mount } from "../../web/kit/kit.js";
import { readNumber } from "./math.js";
import { quizWords } from "./words.js";

// "`x` is y" as [<code>x</code>, " is y"].
function inline(text) {
  return text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));
}

function written(number) {
  return String(Number(number.toPrecision(12))).replace("-", "−");
}

function choiceAnswer(item, words, onChange) {
  const inputs = item.options.map(() => h("input", { type: "radio", name: "answer", onChange })); // a group in its form
  const rows = item.options.map((option, i) =>
    h("label", { class: "mm-option" }, inputs[i], h("span", {}, inline(option.text))),
  );
  const mark = (chosen) =>
    rows.forEach((row, i) => {
      if (i !== chosen) delete row.dataset.mark;
      else row.dataset.mark = item.options[i].correct ? "right" : "wrong";
    });
  return {
    rows,
    clear: () => inputs.forEach((input) => (input.checked = false)),
    unmark: () => mark(-1),
    judge() {
      const chosen = inputs.findIndex((input) => input.checked);
      if (chosen < 0) return { empty: words.chooseFirst };
      mark(chosen);
      return { right: item.options[chosen].correct, why: inline(item.options[chosen].why) };
    },
  };
}

function numberAnswer(item, words, onChange) {
  const input = h("input", {
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    class: "mm-number",
    "aria-label": words.yourNumber,
    onInput: onChange,
  });
  return {
    input,
    clear: () => (input.value = ""),
    unmark: () => delete input.dataset.mark,
    judge() {
      const value = readNumber(input.value, item.unit);
      if (!Number.isFinite(value)) return { empty: words.typeFirst };
      const right = Math.abs(value - item.answer) <= item.tolerance * (1 + 1e-9);
      input.dataset.mark = right ? "right" : "wrong";
      if (right) return { right, why: inline(item.why) };
      return { right, why: [words[value < item.answer ? "tooSmall" : "tooLarge"](written(value))] };
    },
    reveal: () => [h("b", {}, words.answerIs(written(item.answer))), inline(item.why)],
  };
}

function questionCard(item, number, words, onResult) {
  const feedback = h("div", { class: "mm-feedback", role: "status" });
  const badge = h("span", { class: "mm-badge", "aria-hidden": "true" }, number);
  const tell = (tone, ...sentence) => {
    feedback.dataset.tone = tone;
    fill(feedback, h("p", {}, sentence));
  };
  const quiet = () => {
    answer.unmark();
    fill(feedback);
    delete badge.dataset.mark;
  };
  const answer = (item.options ? choiceAnswer : numberAnswer)(item, words, quiet);
  const show = () => {
    answer.unmark();
    tell("plain", answer.reveal());
  };
  const reveal = button({ label: words.showAnswer, onClick: show });
  reveal.root.hidden = true;
  const check = (event) => {
    event.preventDefault();
    const { empty, right, why } = answer.judge();
    if (empty) return tell("plain", empty);
    badge.dataset.mark = right ? "right" : "wrong";
    tell(right ? "good" : "bad", h("b", {}, right ? words.right : words.notYet), why);
    reveal.root.hidden = right || !answer.reveal;
    onResult(right);
  };
  // JupyterLab cancels the line break from which a browser would submit, so Enter is heard here.
  const enter = (event) => {
    if (event.key !== "Enter" || event.target.localName !== "input") return;
    event.preventDefault();
    event.currentTarget.requestSubmit();
  };
  const submit = h("button", { class: "mm-button" }, words.check);
  const actions = h("div", { class: "mm-actions" }, answer.input, submit, reveal);
  const legend = h("legend", {}, h("span", { class: "mm-hidden" }, words.question(number)), inline(item.question));
  const fields = h("fieldset", {}, legend, answer.rows, actions);
  const form = h("form", { onSubmit: check, onKeydown: enter }, badge, fields, feedback);
  return {
    root: h("li", {}, form),
    reset() {
      answer.clear();
      quiet();
      reveal.root.hidden = true;
    },
  };
}

function renderQuiz({ model, el }) {
  const words = wordsOf(quizWords);
  const questions = model.get("questions");
  let results = questions.map(() => []); // for each question, whether each try was right
  const cards = questions.map((item, i) =>
    questionCard(item, i + 1, words, (isRight) => {
      results[i].push(isRight);
      draw();
    }),
  );
  const score = readout([]);
  const reset = () => {
    results = questions.map(() => []);
    cards.forEach((card) => card.reset());
    draw();
    root.querySelector("input").focus();
  };
  const again = button({ label: words.again, onClick: reset });
  const list = h("ol", { class: "mm-questions" }, cards);
  const root = h("div", { class: "mm-fig mm-quiz" }, list, h("div", { class: "mm-score" }, score, again));

  function draw() {
    const count = (test) => words.ofAll(results.filter(test).length, questions.length);
    score.set([
      [words.scoreRight, count((tries) => tries.includes(true))],
      [words.scoreFirst, count((tries) => tries[0])],
    ]);
    again.root.hidden = !results.some((tries) => tries.length);
  }

  return mount(el, root, { model, traits: [], draw, isKept: false });
}

export default { render: renderQuiz };
