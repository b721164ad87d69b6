"""A model of the reader's own, open on one page: its weights, its tokenizer, and the code that runs it there.

    tokenizer   what of a tokenizer.json the page understands; the rest is refused by name
    page        one .html file that fetches nothing
    server      shows it on this machine only

`python -m minimind_edu open MODEL` uses them. In the page: bpe.js and tokens.js make tokens of a text and of tokens
something to read; worker.js runs live/model.js away from the page, reading.js keeps what it read, and insight.js looks
into that; session.js is what the reader does; page.js and the files beside it draw.
"""
