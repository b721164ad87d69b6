"""minimind_edu: the inside of the MiniMind language model, part by part.

model/    the parts, each standing only on those before it, and the chapter that teaches it:

    config            every size and switch; upstream has MiniMind's own names, foreign those of other programs
    norms             RMSNorm                                                                  02
    rope              rotated queries and keys                                                 04
    rope_frequencies  how fast each pair of channels rotates, YaRN                             05
    masks, attention  who reads from whom; grouped heads                                       03, 06
    layer_cache, kv_cache   keys and values of what was read, of one layer and of all          07
    feed_forward, moe       what every position does by itself, in one network or in experts   08, 09
    block, model      parts into a block, blocks into a language model                         10
    tying             one matrix for the embedding and the output, whatever is loaded          11
    loss              how surprised the model is by the token that follows                     13
    sampling, generation    from logits to a token, from tokens to a text                      12
    bpe               where tokens come from: pieces of text, learned by counting              01
    chat, lora, dpo   which tokens of a chat count; thin matrices beside a frozen one; of two answers the better 17
    quantization      weights as whole numbers of few bits, and a scale that restores them     15
    broken_caches     reading with a cache, right or with one of four bugs that raise no error     07
    for_comparison    what MiniMind does not use: LayerNorm, other forms of RoPE, a cache that copies, no gate

The other rooms, which no part imports:

    measure/    what a call must move and compute (costs, counting, traffic), what training keeps (memory), what a call
                takes here (timing, machine), and how it is drawn (plotting)                   14
    fast/       the same tokens, faster: the whole step in one file of C++; rounded weights    14, 15
    weights/    checkpoints and configs in files, of MiniMind's, transformers' and our own
    hf/         into Hugging Face transformers and back, and into one file for llama.cpp (an optional extra)
    world/      small stories in two languages whose every probability is known, to train on and to judge by
    trained/    what was trained for the book, with what is stored of it:
        training      the loop                                                                 13
        living        the book's own model
        ablations     what is lost without a part: variants of a small model, trained and compared     13
        sweeps        one training many times over, with one number changed                    13
        routing       where the tokens of a small mixture of experts go while it learns; what it has room for     09
        sharing       what query heads lose that share keys and values, on a task that needs four of them         06
        tuning        chats about the small world, fine-tuned with every mask, with LoRA and with DPO         17
        verse         poems of Tang and Song, a character a token: form, tones, and how rhyme is learned
    checks/     the exercises, one file for each chapter
    figures/    the interactive figures, a folder each
    web/        what figures and pages stand on: the kit, the model in JavaScript, how both come to a page
    inside/     a reader's own model in a page: python -m minimind_edu open MODEL
    verdicts/   what is right and wrong with a reader's own file, log and data: python -m minimind_edu check MODEL

device, notebook, validation and words serve all of them: where to compute, progress, what is refused in which words,
and in which language readers are spoken to.
"""

from minimind_edu.device import pick_device, pick_dtype
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint

__all__ = [
    "MiniMindConfig",
    "MiniMindForCausalLM",
    "RopeScaling",
    "from_checkpoint",
    "pick_device",
    "pick_dtype",
    "save_checkpoint",
]
