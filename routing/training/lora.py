"""Trains a LoRA adapter (Hu et al. 2021, arXiv 2106.09685) with PEFT, on a CPU too. Needs the extra `train`."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routing.errors import TrainingError
from routing.training.policy import Lesson

RANK = 8
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj")
_INSTALL = "Run in acrouter's folder: .venv/bin/pip install '.[train]'"


@dataclass(frozen=True)
class LoraOptions:
    """How to train. `steps` are updates of `batch` lessons each."""

    steps: int = 200
    batch: int = 8
    learning_rate: float = 5e-4
    max_tokens: int = 2048
    seed: int = 0


def train_adapter(
    lessons: Sequence[Lesson],
    base: str,
    folder: Path,
    options: LoraOptions = LoraOptions(),
    *,
    progress: Callable[[int, float], None] = lambda _step, _loss: None,
) -> float:
    """Train an adapter of `base` (a folder or a name on the hub) into `folder` and return the last loss.

    The loss is that of the answer's tokens alone. `progress` hears the number and the loss of each step.

    Raises:
        TrainingError: PEFT is not installed, or `base` cannot be loaded.
    """
    try:
        import torch
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise TrainingError(f"train policy: {error.name} is not installed. {_INSTALL}") from error
    torch.manual_seed(options.seed)
    try:
        tokenizer = AutoTokenizer.from_pretrained(base)
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise TrainingError(f"train policy: the base model '{base}' cannot be loaded: {error}") from error
    config = LoraConfig(
        r=RANK, lora_alpha=2 * RANK, target_modules=list(TARGETS), lora_dropout=0.0, task_type="CAUSAL_LM"
    )
    model = get_peft_model(model, config).to("cuda" if torch.cuda.is_available() else "cpu")
    prepared = [_tokens(tokenizer, lesson, options.max_tokens) for lesson in lessons]
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=options.learning_rate)
    order = random.Random(options.seed)  # noqa: S311  (the order of lessons is no secret)
    model.train()
    loss = 0.0
    waiting: list[int] = []
    for step in range(1, options.steps + 1):
        loss = 0.0
        for _ in range(options.batch):
            if not waiting:
                waiting = order.sample(range(len(prepared)), len(prepared))
            part = _loss(model, *prepared[waiting.pop()]) / options.batch
            part.backward()
            loss += part.item()
        optimiser.step()
        optimiser.zero_grad()
        progress(step, loss)
    model.save_pretrained(folder)
    return loss


def _tokens(tokenizer: Any, lesson: Lesson, limit: int) -> tuple[list[int], list[int]]:
    """Return the prompt's tokens and the answer's. A prompt that is too long loses its beginning."""
    text = tokenizer.apply_chat_template(list(lesson.messages), add_generation_prompt=True, tokenize=False)
    prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
    answer = tokenizer(lesson.answer, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]
    return prompt[-(limit - len(answer)) :], answer


def _loss(model: Any, prompt: list[int], answer: list[int]) -> Any:
    import torch

    ids = torch.tensor([prompt + answer], device=model.device)
    # The vocabulary is most of a small model's work: it is gone through for the answer alone.
    logits = model(input_ids=ids, logits_to_keep=len(answer) + 1).logits[0, :-1]
    return torch.nn.functional.cross_entropy(logits.float(), ids[0, -len(answer) :])
