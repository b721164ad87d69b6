"""minimind_edu: the inside of the MiniMind language model, part by part.

Each module holds one concept and stands on those before it: config, norms, rope, kv_cache, attention, feed_forward,
moe, block, notebook, packing, token_step, compiled_steps, decoding, generation, model, device, timing, costs, machine;
then the weights in files, weights/: files, hub, state_dicts, config_json, infer_config, checkpoints. What shows, checks
and converts (plotting, figures, checks, hf) imports the model, never the other way round.
"""

from minimind_edu.config import MiniMindConfig
from minimind_edu.device import pick_device, pick_dtype
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.rope_frequencies import RopeScaling
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
