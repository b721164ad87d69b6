"""The living model: it can be made again, its exams measure what they say, and its card fits the stored weights."""

import dataclasses
import hashlib
import itertools
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cases import long_after

from minimind_edu import world
from minimind_edu.trained.living import (
    CARD,
    CONFIG,
    DRAFT,
    DRAFT_CONFIG,
    DRAFT_RECIPE,
    STORED,
    WEIGHTS,
    __main__,
    card,
    draft_model,
    living_model,
    new_model,
    story_batches,
)
from minimind_edu.trained.living.exam import accuracy, divergence, log_probabilities
from minimind_edu.trained.living.heads import (
    answer_reading,
    attention_weights,
    lost_without,
    overlap,
    shares,
    silenced,
    written,
)
from minimind_edu.trained.training import Recipe
from minimind_edu.weights.checkpoints import from_checkpoint

SMALL = dataclasses.replace(CONFIG, num_hidden_layers=2, hidden_size=32, head_dim=8, intermediate_size=24)
MOST_BYTES = 250_000
LEAST_RIGHT = {"living": 0.97, "twin": 0.93}  # of the hardest kind of question: where a thing is
KL = {0: 0.2, 1: 0.3, 2: 0.1}  # of three seeds that were not trained


@pytest.fixture(scope="module")
def model():
    return living_model()


@pytest.fixture(params=long_after(1, STORED))
def both(request):
    """Either stored model: its name, the model and its card."""
    return request.param, living_model(request.param), card(request.param)


@pytest.fixture(scope="module")
def small():
    return new_model(0, SMALL).eval()


def parameters(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


# Stored weights


def test_the_stored_models_are_small_and_ready(both):
    name, model, _ = both
    assert STORED[name].stat().st_size <= MOST_BYTES
    assert model.config == CONFIG and model.config.vocab_size == len(world.WORDS)
    assert not model.training
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_each_call_gives_a_model_of_its_own(model):
    with torch.no_grad():
        living_model().lm_head.weight.zero_()
    assert torch.equal(parameters(living_model()), parameters(model))


def test_the_twin_is_another_model_of_the_same_size():
    living, twin = parameters(living_model()), parameters(living_model("twin"))
    assert living.shape == twin.shape
    assert abs(torch.corrcoef(torch.stack([living, twin]))[0, 1]) < 0.1, "they began with other numbers"


def test_a_name_that_is_not_stored_is_refused(monkeypatch, tmp_path):
    for asked in (living_model, card):
        with pytest.raises(ValueError, match="^name must be 'living' or 'twin', got 'sister'$"):
            asked("sister")
    monkeypatch.setitem(STORED, "twin", tmp_path / "twin.safetensors")
    with pytest.raises(FileNotFoundError, match="the weights of 'twin' are not in the package .*; install the whole"):
        living_model("twin")


# Models that have learned nothing, and what they would learn from


def test_a_new_model_is_the_same_on_every_machine():
    numbers = parameters(new_model(3, SMALL)).double().numpy().round(4) + 0.0
    assert hashlib.sha256(numbers.tobytes()).hexdigest()[:16] == "f0a308843ace4dc2"
    assert not torch.equal(parameters(new_model(3, SMALL)), parameters(new_model(4, SMALL)))


def test_the_batches_of_a_seed_are_stories_and_repeat():
    first, second = (batch for batch, _ in zip(story_batches(5, 3, 20), range(2), strict=False))
    assert (first.shape, first.dtype) == ((3, 20), torch.int64)
    assert not torch.equal(first, second)
    assert torch.equal(next(story_batches(5, 3, 20)), first)
    for story in torch.cat([first, second]).numpy():
        world.distributions(story)  # raises where a word cannot follow


# Exams


class Knows:
    """A model that knows the world: its logits are the exact log-probabilities; of texts, for zeros end them."""

    def __call__(self, ids):
        logits = torch.full((*ids.shape, len(world.WORDS)), -1e3, dtype=torch.float64)
        for row, text in zip(logits, ids.numpy(), strict=True):
            end = 1 + int(np.flatnonzero(text)[-1])
            exact = torch.from_numpy(world.distributions(text[:end]))
            row[:end] = exact.log().clamp(min=-1e3)
        return SimpleNamespace(logits=logits)


class Knows_not(Knows):
    """Thinks that the most probable word is the least."""

    def __call__(self, ids):
        return SimpleNamespace(logits=-super().__call__(ids).logits)


class Guesses:
    """All words are as likely."""

    def __call__(self, ids):
        return SimpleNamespace(logits=torch.zeros(*ids.shape, len(world.WORDS)))


@pytest.mark.parametrize("kind", world.QUESTIONS)
def test_who_knows_the_world_answers_everything(kind):
    asked = world.questions(kind, 4, 1, 60)
    assert accuracy(Knows(), asked) == 1.0
    assert accuracy(Knows_not(), asked) == 0.0


def test_every_word_of_an_answer_must_be_right():
    asked = world.questions("translation", 3, 1, 60)

    class LastWordWrong(Knows):
        def __call__(self, ids):
            out = super().__call__(ids)
            for row, one in zip(out.logits, asked, strict=True):
                row[len(one.prompt) + len(one.answer) - 2] = 0
            return out

    assert accuracy(LastWordWrong(), asked) == 0.0


def test_batches_of_an_exam_do_not_change_it(small, monkeypatch):
    asked = [one for kind in world.QUESTIONS for one in world.questions(kind, 5, 2, 60)]
    whole = accuracy(small, asked)
    monkeypatch.setattr("minimind_edu.trained.living.exam.BATCH", 3)
    assert accuracy(small, asked) == whole


def test_the_world_is_no_distance_from_itself():
    stories = world.stories(3, 40, 4)
    kl, entropy = divergence(Knows(), stories)
    assert kl == pytest.approx(0, abs=1e-12)
    assert entropy == pytest.approx(np.mean([world.entropies(story) for story in stories]))


def test_a_guess_is_as_far_as_it_must_be():
    stories = world.stories(3, 40, 4)
    kl, entropy = divergence(Guesses(), stories)
    assert kl == pytest.approx(np.log(len(world.WORDS)) - entropy)


def test_the_distance_is_loss_less_entropy_where_words_are_drawn_from_the_world(small):
    """On the average over what may come next, not on one text: the loss of the words themselves would differ."""
    [story] = world.stories(1, 30, 4)
    exact = torch.from_numpy(world.distributions(story))[:-1]
    loss = -(exact * log_probabilities(small, torch.from_numpy(story)[None])[0, :-1]).sum(-1).mean().item()
    kl, entropy = divergence(small, story[None])
    assert kl + entropy == pytest.approx(loss)


# Heads


def test_a_silenced_head_comes_back(small):
    before, ids = parameters(small), torch.tensor([[0, 2, 29]])
    said = small(ids).logits
    with silenced(small, 1, 2):
        assert not torch.equal(small(ids).logits, said)
        size = SMALL.head_dim
        columns = small.model.layers[1].self_attn.o_proj.weight
        assert (columns[:, 2 * size : 3 * size] == 0).all()
        assert (columns == 0).sum() == columns.shape[0] * size
    assert torch.equal(parameters(small), before)
    with pytest.raises(KeyError), silenced(small, 0, 0):
        raise KeyError
    assert torch.equal(parameters(small), before)


@torch.no_grad()
def test_attention_weights_are_those_with_which_the_model_reads(small):
    ids = torch.from_numpy(world.stories(1, 20, 3))
    weights = attention_weights(small, ids)  # [L, H, S, S]
    assert weights.shape == (2, 4, 20, 20)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 20))
    assert (weights.triu(1) == 0).all()
    layer, given, returned = small.model.layers[1], [], []
    hooks = [
        layer.input_layernorm.register_forward_hook(lambda _, x, y: given.append(y)),
        layer.self_attn.o_proj.register_forward_hook(lambda _, x, y: returned.append(x[0])),
    ]
    small(ids)
    [hook.remove() for hook in hooks]
    values = layer.self_attn.v_proj(given[0]).view(20, 2, 8).repeat_interleave(2, 1)  # [S, H, D]
    read = torch.einsum("hst,thd->shd", weights[1], values).flatten(1)  # [S, H*D]
    torch.testing.assert_close(read, returned[0][0], rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_reading_is_the_weight_on_mentions_of_the_answer_in_either_language(small):
    question = next(
        one
        for one in world.questions("where", 50, 3, 60)
        if {int(one.answer[0]), int(one.answer[0]) + 44} <= set(one.prompt.tolist())
    )
    answer = int(question.answer[0])
    weights = attention_weights(small, torch.from_numpy(question.prompt)[None])[:, :, -1]
    mentions = [i for i, word in enumerate(question.prompt) if word in (answer, answer + 44)]
    torch.testing.assert_close(answer_reading(small, [question]), weights[:, :, mentions].sum(-1))
    torch.testing.assert_close(answer_reading(small, [question, question]), weights[:, :, mentions].sum(-1))


def test_what_is_lost_without_a_head_is_accuracy(model):
    asked = world.questions("recall", 12, 3, 60)
    lost = lost_without(model, asked)
    assert lost.shape == (model.config.num_hidden_layers, model.config.num_attention_heads)
    layer, head = divmod(int(lost.abs().argmax()), lost.shape[1])
    with silenced(model, layer, head):
        without = accuracy(model, asked)
    assert lost[layer, head].item() == pytest.approx(accuracy(model, asked) - without, abs=1e-6)
    assert lost[layer, head] != 0, "no head would matter"


def test_overlap_adds_up_the_smaller_weights_of_two_heads(small):
    told = torch.from_numpy(world.stories(2, 7, 0))
    alike, entropy = overlap(small, told)
    reads = [attention_weights(small, story[None]) for story in told]  # each [L, H, S, S]
    for layer, one, other in ((0, 0, 1), (1, 3, 1)):
        rows = [
            min(float(read[layer, one, s, t]), float(read[layer, other, s, t]))
            for read, s, t in itertools.product(reads, range(7), range(7))
        ]
        assert float(alike[layer, one, other]) == pytest.approx(sum(rows) / 14, abs=1e-5)
        weights = torch.stack([read[layer, one] for read in reads])
        assert float(entropy[layer, one]) == pytest.approx(
            float(-(weights * weights.clamp(min=1e-30).log()).sum() / 14), abs=1e-5
        )
    torch.testing.assert_close(alike.diagonal(dim1=1, dim2=2), torch.ones(alike.shape[:2]))


def test_heads_that_share_keys_read_more_alike_in_every_layer():
    """What chapter 6 says of both models, and of untrained ones that are as sharp."""
    told = torch.from_numpy(world.stories(5, 96, 3))
    blind = new_model(0).requires_grad_(False)
    for name, weight in blind.named_parameters():
        if "q_norm" in name:
            weight *= 3
    trained = living_model(), living_model("twin")
    for model in trained:
        alike, entropy = overlap(model, told)
        same, other = (alike[:, 0, 1] + alike[:, 2, 3]) / 2, alike[:, :2, 2:].mean((1, 2))
        assert (same > other).all() and same.mean() > 0.3
        sharp, blur = overlap(blind, told)
        assert blur.mean() == pytest.approx(float(entropy.mean()), abs=0.15)
        assert sharp[:, 0, 1].mean() < 0.2 < float(other.mean())


def test_what_is_written_adds_up_to_the_stream_and_its_shares_to_the_logits(model):
    ids = story_ids()
    with torch.no_grad():
        logits, normed = model(ids).logits[0, -1], model.model(ids)[0][0, -1]
    parts, config = written(model, ids), model.config
    assert parts.shape == (1 + config.num_hidden_layers * (config.num_attention_heads + 1), config.hidden_size)
    torch.testing.assert_close(model.model.norm(parts.sum(0)), normed, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(shares(model, ids).sum(0), logits, rtol=1e-4, atol=1e-4)
    assert torch.equal(parts[0], model.model.embed_tokens.weight[ids[0, -1]])


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (2, 3), (3, 1)])
def test_each_head_has_its_own_row(model, layer, head):
    """A silenced head writes nothing, and what was written before it stays as it was."""
    ids, row = story_ids(), 1 + layer * 5 + head
    whole = written(model, ids)
    with silenced(model, layer, head):
        without = written(model, ids)
    assert whole[row].norm() > 0.01 and not without[row].any()
    others = [i for i in range(1 + layer * 5 + 4) if i != row]  # up to this block's network
    torch.testing.assert_close(without[others], whole[others])
    assert not torch.allclose(without[1 + layer * 5 + 4], whole[1 + layer * 5 + 4])


def test_the_last_reader_writes_the_answer_and_crosses_its_neighbor_out(model):
    """What chapter 3 tells of its story."""
    share = shares(model, story_ids())[1:].view(4, 5, -1)[3]
    hall, kitchen = world.encode("hall kitchen")
    assert share[:4, hall].argmax() == 1 and share[1, hall] > 4 * share[1, kitchen]
    assert share[0, kitchen] < -3


def story_ids():
    told = (
        "<s> Mia is in the kitchen. Tom is in the garden. Mia goes from the kitchen to the hall. where is Mia? in the"
    )
    return torch.from_numpy(world.encode(told))[None]


# The program that makes it, and its card


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the program writes after two steps, with exams as small as can be."""
    folder = tmp_path_factory.mktemp("made") / "new"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("QUESTIONS", "FEW_QUESTIONS", "HEAD_QUESTIONS", "STORIES", "FEW_STORIES"):
            patch.setattr(__main__, name, 1)
        patch.setattr(sys, "argv", ["living", "--steps", "2", "--seeds", "0", "1", "--into", str(folder)])
        __main__.main()
    return folder


def test_the_program_makes_a_model_and_its_card(made):
    written, stored = json.loads((made / CARD.name).read_text()), from_checkpoint(made / WEIGHTS.name)
    assert stored.config == CONFIG
    assert written.keys() == card().keys() | {"twin"}
    assert [run["seed"] for run in written["runs"]] == [0, 1]
    best, next_best = sorted(written["runs"], key=lambda run: run["kl"])
    assert (written["stored"], written["recipe"]["steps"]) == (best["seed"], 2)
    assert written["twin"]["stored"] == next_best["seed"]
    assert [glance["step"] for glance in best["glances"]] == [0, 2]
    shape = (CONFIG.num_hidden_layers, CONFIG.num_attention_heads)
    for known, file in zip((written, written["twin"]), STORED.values(), strict=True):
        assert known["bytes"] == (made / file.name).stat().st_size
        assert known["parameters"] == stored.num_parameters()
        for scores in (known["lost_without"], known["reading"]):
            assert scores.keys() == set(__main__.HEADS_OF)
            assert {np.shape(rows) for rows in scores.values()} == {shape}


def test_the_files_are_of_the_seeds_that_the_card_names(made):
    """The exams of both are those of their own file."""
    written = json.loads((made / CARD.name).read_text())
    kls = {}
    for known, file in zip((written, written["twin"]), STORED.values(), strict=True):
        kl, _ = divergence(from_checkpoint(made / file.name), world.stories(1, __main__.LENGTH, __main__.EXAM))
        assert known["int8"]["kl"] == pytest.approx(kl, abs=1e-4)
        kls[known["stored"]] = kl
    trained = {run["seed"]: run["kl"] for run in written["runs"]}
    assert kls == pytest.approx(trained, abs=0.02) and abs(trained[0] - trained[1]) > 0.03


def test_a_run_counts_the_seconds_of_training_alone_and_smooths_its_losses(monkeypatch):
    """A clock that ticks when it is read: at both ends, and at both ends of the one look in between."""
    clock = itertools.count()

    def train(model, batches, recipe, after):
        for step in range(recipe.steps):
            after(step, 0.0)
        return [1.0, 2.0] * (recipe.steps // 2)

    monkeypatch.setattr(__main__, "time", SimpleNamespace(process_time=lambda: next(clock)))
    monkeypatch.setattr(__main__, "train", train)
    monkeypatch.setattr(__main__, "glance", lambda model, step: {"step": step})
    monkeypatch.setattr(__main__, "exam", lambda *_: {"kl": 0.1})
    monkeypatch.setattr(__main__, "SMOOTH", 2)
    _, result = __main__.run(0, Recipe(steps=6, warmup=1))
    assert result["losses"] == [1.5, 1.5, 1.5]
    assert result["cpu_seconds"] == 2
    assert [one["step"] for one in result["glances"]] == [0, 6]


def test_the_nearest_seed_is_stored_and_int8_changes_it_little(made):
    written = json.loads((made / CARD.name).read_text())
    assert written["int8"]["kl"] == pytest.approx(min(run["kl"] for run in written["runs"]), abs=0.02)
    assert written["int8"]["entropy"] == written["runs"][0]["entropy"]


def test_the_card_is_of_the_stored_weights(both):
    name, model, known = both
    assert known["bytes"] == STORED[name].stat().st_size
    assert known["parameters"] == model.num_parameters()
    assert known["int8"]["accuracy"].keys() == world.QUESTIONS.keys()
    assert known["stored"] in [run["seed"] for run in known["runs"]]
    shape = (model.config.num_hidden_layers, model.config.num_attention_heads)
    for scores in (*known["lost_without"].values(), *known["reading"].values()):
        assert np.shape(scores) == shape


def test_the_card_tells_the_distance_of_the_stored_weights(both):
    """Of its hundred stories."""
    _, model, known = both
    kl, entropy = divergence(model, world.stories(__main__.STORIES, __main__.LENGTH, __main__.EXAM))
    assert kl == pytest.approx(known["int8"]["kl"], abs=2e-4)
    assert entropy == pytest.approx(known["int8"]["entropy"], abs=1e-4)


@pytest.mark.parametrize("kind", ["where object", "who"])
def test_the_card_tells_the_accuracy_of_the_stored_weights(both, kind):
    _, model, known = both
    asked = world.questions(kind, known["questions"], __main__.EXAM + 1, __main__.LENGTH)
    assert accuracy(model, asked) == pytest.approx(known["int8"]["accuracy"][kind], abs=0.004)


def test_the_card_tells_what_is_lost_without_the_head_that_matters_most(both):
    """Where is somebody? One head knows."""
    _, model, known = both
    lost = torch.tensor(known["lost_without"]["recall"])
    layer, head = divmod(int(lost.argmax()), lost.shape[1])
    asked = world.questions("recall", __main__.HEAD_QUESTIONS, __main__.EXAM + 2)
    with silenced(model, layer, head):
        found = accuracy(model, asked)
    assert accuracy(model, asked) - found == pytest.approx(float(lost.max()), abs=0.02)


def test_it_has_learned_the_world(both):
    """Every kind of question, with two of three seeds, which are stored; the third is told about, not hidden."""
    name, model, told = both
    known = told["int8"]
    assert known["kl"] <= 0.03 and set(known["accuracy"]) == set(world.QUESTIONS)
    assert min(known["accuracy"].values()) >= LEAST_RIGHT[name], known["accuracy"]
    learned = [run for run in card()["runs"] if run["kl"] <= 0.03 and min(run["accuracy"].values()) >= 0.93]
    assert len(card()["runs"]) == 3 and len(learned) >= 2
    nearest = sorted(card()["runs"], key=lambda run: run["kl"])
    assert [card("living")["stored"], card("twin")["stored"]] == [run["seed"] for run in nearest[:2]]
    asked = world.questions("who", 300, __main__.EXAM + 3)
    assert accuracy(model, asked) >= 0.97, "of other questions than those of the card"


def test_one_head_knows_where_people_are_and_translates_nothing(model):
    """What the fourth press of the living page shows."""
    lost = {kind: torch.tensor(table) for kind, table in card()["lost_without"].items()}
    layer, head = divmod(int((lost["recall"] * (1 - lost["translation"])).argmax()), lost["recall"].shape[1])

    def says(text: str) -> str:
        return world.WORDS[model(torch.from_numpy(world.encode(f"<s> {text}"))[None]).logits[0, -1].argmax()]

    told = "Mia is in the kitchen. Tom is in the garden. "
    question = told + "Mia goes from the kitchen to the garage. 米娅在哪里？在"
    assert says(question) == "车库"
    with silenced(model, layer, head):
        assert says(question) == "花园"  # where Tom is
        assert says(told + "⇒ 汤姆在") == "花园"  # and here it is right


# The draft, which guesses ahead


@torch.no_grad()
def test_the_draft_is_an_eighth_of_the_model_and_often_agrees(model):
    draft = draft_model()
    assert draft.config == DRAFT_CONFIG and not draft.training
    assert DRAFT.stat().st_size <= 40_000
    assert 7 * draft.num_parameters() <= model.num_parameters()
    ids = torch.from_numpy(world.stories(8, __main__.LENGTH, __main__.EXAM))
    agreed = (draft(ids).logits.argmax(-1) == model(ids).logits.argmax(-1)).float().mean()
    assert 0.6 < agreed < 1


DIFFERING = {
    "short": (["--steps", "200"], "only a whole run replaces what the book has"),
    "as long, but asked for": (["--steps", "12000"], "only a whole run replaces what the book has"),
    "one seed": (["--seeds", "0"], "only a whole run replaces what the book has"),
    "a short draft": (["--draft", "--steps", "1"], "only a whole run replaces what the book has"),
    "no steps": (["--steps", "0", "--into", "."], "it must be a whole number of at least 1, got '0'"),
    "a draft of no steps": (["--draft", "--steps", "0", "--into", "."], "it must be a whole number of at least 1"),
    "a seed below 0": (["--seeds", "-1", "--into", "."], "--seeds: "),
    "a draft of several seeds": (["--draft", "--seeds", "0", "1"], "--draft trains one model, so it takes no --seeds"),
}


@pytest.mark.parametrize("case", DIFFERING)
def test_a_run_that_differs_never_replaces_what_the_book_has(case, tmp_path, monkeypatch, capsys):
    arguments, message = DIFFERING[case]
    for name in ("run", "make_draft", "save_checkpoint"):
        monkeypatch.setattr(__main__, name, lambda *_, **__: pytest.fail("it was trained"))
    monkeypatch.setattr(sys, "argv", ["living", *arguments])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        __main__.main()
    assert message in capsys.readouterr().err


def test_a_whole_run_writes_where_the_book_reads(tmp_path, monkeypatch):
    """Three seeds, and every step of the recipe; the draft goes there, too."""
    (tmp_path / "book").mkdir()
    seeds, drafts, files = [], [], {}

    def run(seed, recipe):
        seeds.append((seed, recipe))
        return f"model {seed}", {"seed": seed, "kl": KL[seed], "accuracy": {}}

    def save_checkpoint(model, path, int8):
        files[path.name] = model
        return path if path.write_bytes(b"weights") else None

    monkeypatch.setattr(__main__, "WEIGHTS", tmp_path / "book" / "weights.safetensors")
    monkeypatch.setattr(__main__, "run", run)
    monkeypatch.setattr(__main__, "save_checkpoint", save_checkpoint)
    monkeypatch.setattr(__main__, "known_of", lambda path, seed: {"stored": seed})
    monkeypatch.setattr(__main__, "make_draft", lambda *given: drafts.append(given))
    for arguments in ([], ["--draft"]):
        monkeypatch.setattr(sys, "argv", ["living", *arguments])
        __main__.main()
    assert seeds == [(seed, Recipe()) for seed in (0, 1, 2)]
    assert files == {"weights.safetensors": "model 2", "twin.safetensors": "model 0"}
    told = json.loads((tmp_path / "book" / "card.json").read_text())
    assert (told["stored"], told["twin"], len(told["runs"])) == (2, {"stored": 0}, 3)
    assert drafts == [(tmp_path / "book" / "draft.safetensors", DRAFT_RECIPE.steps)]


def test_the_program_makes_a_draft(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(__main__, "STORIES", 1)
    monkeypatch.setattr(sys, "argv", ["living", "--draft", "--steps", "2", "--into", str(tmp_path)])
    __main__.main()
    assert from_checkpoint(tmp_path / DRAFT.name).config == DRAFT_CONFIG
    assert [path.name for path in tmp_path.iterdir()] == [DRAFT.name]
    assert "nats per word from the world" in capsys.readouterr().out
