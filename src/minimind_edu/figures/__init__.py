"""Interactive figures: one Python class and one plain ES module each, alive with a kernel and without."""

from minimind_edu.figures.ablation_lab import AblationLab
from minimind_edu.figures.attention_xray import AttentionXRay
from minimind_edu.figures.base import Figure, figure_names, module_source, own_stylesheet, shared_stylesheet
from minimind_edu.figures.cache_stepper import CacheStepper
from minimind_edu.figures.frequency_comb import FrequencyComb
from minimind_edu.figures.gate_surface import GateSurface
from minimind_edu.figures.head_wiring import HeadWiring
from minimind_edu.figures.living_model import asks_for_living, living_script
from minimind_edu.figures.minimind_live import MiniMindLive
from minimind_edu.figures.model_map import ModelMap
from minimind_edu.figures.neuron_words import NeuronWords
from minimind_edu.figures.norm_geometry import NormGeometry
from minimind_edu.figures.pairing_lab import PairingLab
from minimind_edu.figures.parameter_ledger import ParameterLedger
from minimind_edu.figures.quantization_grid import QuantizationGrid
from minimind_edu.figures.quiz import Quiz, choice
from minimind_edu.figures.residual_stream import ResidualStream
from minimind_edu.figures.roofline import Roofline
from minimind_edu.figures.rotation_dials import RotationDials
from minimind_edu.figures.router_flow import RouterFlow
from minimind_edu.figures.sampler import Sampler

__all__ = [
    "AblationLab",
    "AttentionXRay",
    "CacheStepper",
    "Figure",
    "FrequencyComb",
    "GateSurface",
    "HeadWiring",
    "MiniMindLive",
    "ModelMap",
    "NeuronWords",
    "NormGeometry",
    "PairingLab",
    "ParameterLedger",
    "QuantizationGrid",
    "Quiz",
    "ResidualStream",
    "Roofline",
    "RotationDials",
    "Sampler",
    "RouterFlow",
    "asks_for_living",
    "choice",
    "figure_names",
    "living_script",
    "module_source",
    "own_stylesheet",
    "shared_stylesheet",
]
