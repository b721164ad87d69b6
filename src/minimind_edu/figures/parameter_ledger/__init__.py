"""ParameterLedger: where the parameters of a MiniMind stand, tied or not, over its four sizes.

The figure computes its numbers in JavaScript (parameter_ledger/math.js, compared in the tests with models that
the package builds); the numbers in its table are counted here, on a model without storage.
"""

from traitlets import Bool, Bunch, Enum, Int, TraitError, validate

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.web.base import Figure
from minimind_edu.weights.without_storage import without_storage

PARTS = ("embedding", "attention", "feed-forward", "norms", "head")


def count_by_part(config: MiniMindConfig) -> dict[str, int]:
    """Parameters of each of `PARTS`, counted on a model without storage; a tied matrix counts as embedding only."""
    counts: dict[str, int] = dict.fromkeys(PARTS, 0)
    for name, parameter in without_storage(config).named_parameters():
        counts[_part(name)] += parameter.numel()
    return counts


def _part(name: str) -> str:
    if "norm" in name:
        return "norms"
    for word, part in {"embed": "embedding", "attn": "attention", "mlp": "feed-forward"}.items():
        if word in name:
            return part
    return "head"


class ParameterLedger(Figure):
    """A bar for each part of a model, with its parameters, and the shares of the parts at every depth.

    Args:
        hidden_size: a multiple of 64 from 128 to 2048; always 8 query heads.
        num_hidden_layers: 1 to 32.
        vocab_size: 800 to 204,800.
        num_key_value_heads: 1, 2, 4 or 8.
        generation: whose feed-forward width and norms, `minimind2` or `minimind3`.
        tied: whether the output layer uses the embedding matrix.

    Raises:
        TraitError: if a size is out of its range, or hidden_size is no multiple of 64.
    """

    _repr_traits = ("hidden_size", "num_hidden_layers", "vocab_size", "num_key_value_heads", "tied")

    hidden_size = Int(512, min=128, max=2048).tag(sync=True)
    num_hidden_layers = Int(8, min=1, max=32).tag(sync=True)
    vocab_size = Int(6400, min=800, max=204_800).tag(sync=True)
    num_key_value_heads = Enum((1, 2, 4, 8), default_value=2).tag(sync=True)
    generation = Enum(("minimind2", "minimind3"), default_value="minimind2").tag(sync=True)
    tied = Bool(True).tag(sync=True)

    @validate("hidden_size")
    def _multiple_of_64(self, proposal: Bunch) -> int:
        if proposal["value"] % 64:
            raise TraitError(f"hidden_size must be a multiple of 64, got {proposal['value']}")
        return proposal["value"]

    def config(self, tied: bool) -> MiniMindConfig:
        """The model that the figure shows, tied or not."""
        make = getattr(MiniMindConfig, self.generation)
        return make(
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            vocab_size=self.vocab_size,
            num_key_value_heads=self.num_key_value_heads,
            tie_word_embeddings=tied,
            max_position_embeddings=1,  # tables of RoPE are no parameters
        )

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        tied, untied = (count_by_part(self.config(state)) for state in (True, False))
        whole = sum(untied.values())
        rows = [(part, f"{count:,}, {count / whole:.2%}") for part, count in untied.items()]
        rows += [("untied model", f"{whole:,}"), ("tied model", f"{sum(tied.values()):,}")]
        return (
            f"Without tying, this model has {whole:,} parameters, shared out as below; tying saves the head, "
            f"{untied['head']:,} parameters or {untied['head'] / whole:.2%} of it.",
            rows,
        )
