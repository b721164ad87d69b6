"""A small model that has learned one sentence, with a tokenizer for it, exported to the folder my-model."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, hf

SENTENCE = "the cat sat on the mat, and the dog lay at the door."
# ids 0, 1 and 2, as in MiniMind
PADDING, BEGIN, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

tokens = Tokenizer(models.BPE())
tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokens.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(
    special_tokens=[PADDING, BEGIN, END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
)
tokens.train_from_iterator([SENTENCE], trainer)
PreTrainedTokenizerFast(tokenizer_object=tokens, pad_token=PADDING, bos_token=BEGIN, eos_token=END).save_pretrained(
    "my-tokenizer"
)

torch.manual_seed(0)
# heads of 64 channels, as serving engines expect them
sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64}
config = MiniMindConfig.minimind3(vocab_size=tokens.get_vocab_size(), **sizes)
model = MiniMindForCausalLM(config)
ids = torch.tensor([tokens.encode(SENTENCE + END).ids])  # [1, S]
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(60):
    loss = model(ids, labels=ids).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss of the sentence: {loss.item():.2f}")

hf.export(model.eval(), "my-model", tokenizer="my-tokenizer", overwrite=True)
