"""Hugging Face transformers: this book's models inside it, and out to it. An optional extra, imported on demand.

    export(model, folder)       a folder that AutoModelForCausalLM loads as Llama, Qwen3 or Qwen3-MoE
    gguf.write_gguf(...)        that folder as one file for llama.cpp and Ollama
    to_transformers(model)      that model of transformers in memory
    MiniMindEduForCausalLM      the adapter: any model of ours with transformers' generate, save and load
    MiniMindEduModel            the same without its output layer, for AutoModel

For transformers 5; tested with 5.0, 5.15 and 5.23. Exported folders can be read by transformers 4.57 too.
"""

try:
    import transformers
except ImportError as error:
    raise ImportError(
        "minimind_edu.hf needs transformers, which is an optional extra: pip install 'transformers>=5.0'"
    ) from error
from packaging.version import Version

if Version(transformers.__version__).major < 5:
    raise ImportError(
        f"minimind_edu.hf needs transformers 5 or newer, found {transformers.__version__}: "
        "pip install 'transformers>=5.0'"
    )

from minimind_edu.hf.adapter import MiniMindEduForCausalLM
from minimind_edu.hf.base_model import MiniMindEduModel
from minimind_edu.hf.config import MiniMindEduConfig
from minimind_edu.hf.counterpart import counterpart_config
from minimind_edu.hf.export import export, to_transformers

__all__ = [
    "MiniMindEduConfig",
    "MiniMindEduForCausalLM",
    "MiniMindEduModel",
    "counterpart_config",
    "export",
    "to_transformers",
]
