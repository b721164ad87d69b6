"""A model of the reader's own, open on one page: its weights, its tokenizer, and the code that runs it there.

    tokenizer   what of a tokenizer.json the page understands; the rest is refused by name
    page        one .html file that fetches nothing
    server      shows it on this machine only
    kernel      answers the same views in a notebook, by torch
    notebook    `figures.Inside(model, tokenizer, "a text")`
    beside/     two models on one page, and where they part
    verse/      another page, on which the model of `trained.verse` writes poems

`python -m minimind_edu open MODEL` uses the first three. In the page: opening.js unpacks the weights and compares with
torch; bpe.js and tokens.js make tokens of a text and of tokens something to read; worker.js runs the model away from
the page, by step.js with step.wasm, which tools/step_wasm.py compiles from fast/step.cpp, or else by live/model.js;
reading.js keeps what it read, and insight.js looks into that; session.js is what the reader does, and address.js tells
it; views.js and the files beside it draw. What the living page (minimind_live) does and shows alike is in stage/. Each
keeps what its world asks for: the small one its rules, exact probabilities, and drawings that a still can hold; a large
one a worker whose answers come later, pushes, and small maps on a canvas, for no other drawing of 500 tokens is done in
time.
"""
