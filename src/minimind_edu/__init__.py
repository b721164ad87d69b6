"""minimind_edu: the inside of the MiniMind language model, part by part.

Each module holds one concept and stands on those before it: config, norms, rope, kv_cache, attention, feed_forward,
moe, block, packing, token_step, compiled_steps, decoding, generation, model, checkpoints, device. What shows, checks
and converts (plotting, figures, checks) imports the model, never the other way round.
"""

from minimind_edu.checkpoints import from_checkpoint, save_checkpoint
from minimind_edu.config import MiniMindConfig, RopeScaling
from minimind_edu.device import pick_device, pick_dtype
from minimind_edu.model import MiniMindForCausalLM

__version__ = "0.1.0"

__all__ = [
    "MiniMindConfig",
    "MiniMindForCausalLM",
    "RopeScaling",
    "from_checkpoint",
    "pick_device",
    "pick_dtype",
    "save_checkpoint",
]
