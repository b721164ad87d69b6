"""How fast the model decodes, reads a prompt and learns, measured beside its peers: `python -m benchmarks`.

    timing.py      the clock, paired rounds, medians and slopes
    peers.py       what is compared, all with the same weights; notes_way.py is one of them
    bench.py       what all scenarios share: device, clock, peers, read limit (reading.cpp)
    scenarios.py   what is timed;  agreement.py what must be equal
    engines/       llama.cpp, ctranslate2 and onnxruntime, each in a process of its own
    among_engines.py  our ways in turns with them, and what rounding costs
    suites.py      which scenarios a full and a quick run have
    findings.py    from measured seconds to ratios, and the targets beside them
    report.py      machine, JSON and table;  picture.py and byte_chart.py draw
    memory.py      how much of a GPU training takes, a program of its own

Machines are noisy, neighbors more so. Everything that is compared is therefore timed in turns (A B C, B C A, ...), and
compared within a round; a result is the median over rounds, with the least and the largest beside it. On one CPU
thread the clock counts the time the CPU worked, not the time that passed. torch.utils.benchmark times one statement
after the other, so that what changes between two statements looks like a difference between them; it has no pairs.
"""
