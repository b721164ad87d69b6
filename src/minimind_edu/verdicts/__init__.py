"""What is right and what is wrong with a model, a training log and a data file of a reader's own.

    verdict      one finding in plain words, its number and what to do; the screen of many; both languages
    model_file   what a file holds: family and age, tying, assumptions, tensors, NaN, dtype, transformers, a text
    gguf_file    a model out of llama.cpp's file
    same_model   whether two files are one model, and the first block where they part
    lora         adapters: whether one was merged into a model, and how often
    log          reading MiniMind's training logs of every age, and plain lines of steps and losses
    curve        what a log's curve shows: start, NaN, jumps, rates, plateaus, and bands of what others saw
    picture      the curve with what was found on it
    loss_mask    which tokens of a chat count for the loss
    data         what a JSONL gives to training: tokens, what is cut, what counts, what a template lacks

`python -m minimind_edu check MODEL --log FILE --data FILE` shows all of it. Nothing in a reader's files is executed,
but for a chat template, which runs in transformers' sandbox.
"""
