"""Whether a pair fits into this machine, and what would fit where it does not."""

from dataclasses import dataclass

from specli.errors import ModelError
from specli.text import human_size

MIN_N_CTX = 512  # a smaller context is no help to anybody


@dataclass(frozen=True, slots=True)
class Need:
    """What one model takes.

    compute_bytes: scratch buffers and the rows of logits. repacked: llama.cpp lays out some
    weights anew for this CPU, so that a mapped file is held twice in part. n_gpu_layers: how many
    layers are to go to a GPU, -1 for all. n_ctx_train: most tokens of a text that the model was
    trained on, 0 where that is not known.
    """

    weights_bytes: int
    cache_bytes: int
    compute_bytes: int
    n_ctx: int
    n_layers: int
    repacked: bool = False
    n_gpu_layers: int = 0
    n_ctx_train: int = 0

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.weights_bytes + self.cache_bytes + self.compute_bytes

    @property
    def gpu_bytes(self) -> int:
        """What of it is to lie on a GPU."""
        if self.n_gpu_layers == 0:
            return 0
        share = self.n_gpu_layers / max(self.n_layers, 1) if self.n_gpu_layers > 0 else 1.0
        layers = (self.weights_bytes + self.cache_bytes) * min(share, 1.0)
        return round(layers) + self.compute_bytes


@dataclass(frozen=True, slots=True)
class Room:
    """What is free. gpu_bytes: on all GPUs that llama.cpp sees, 0 without one."""

    ram_bytes: int
    gpu_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """All of it; a GPU that shares its memory with the CPU counts once."""
        return self.ram_bytes + self.gpu_bytes


def check_fit(target: Need, draft: Need | None, room: Room, smaller: str = "") -> None:
    """Raise ModelError where a pair does not fit, with what would.

    smaller: the name of a quantization of the target that fits, "" where there is none.
    """
    needs = [target, draft] if draft else [target]
    total = sum(need.total_bytes for need in needs)
    on_gpu = sum(need.gpu_bytes for need in needs) if room.gpu_bytes else 0
    if on_gpu <= room.gpu_bytes and total - on_gpu <= room.ram_bytes:
        return
    weights = sum(need.weights_bytes for need in needs)
    caches = sum(need.cache_bytes for need in needs)
    message = (
        f"{'these models need' if draft else 'this model needs'} {human_size(total)} "
        f"(weights {human_size(weights)}, KV cache {human_size(caches)}, "
        f"buffers {human_size(total - weights - caches)}), "
        f"{human_size(room.ram_bytes)} of memory is free"
    )
    if room.gpu_bytes:
        message += f" and {human_size(room.gpu_bytes)} on the GPU"
    raise ModelError(message, _advice(target, draft, room, smaller))


def layers_that_fit(need: Need, gpu_bytes: int) -> int:
    """Return how many layers of a model go to a GPU with that much free memory."""
    per_layer = (need.weights_bytes + need.cache_bytes) / max(need.n_layers, 1)
    return max(0, min(need.n_layers, int((gpu_bytes - need.compute_bytes) / max(per_layer, 1))))


def _advice(target: Need, draft: Need | None, room: Room, smaller: str) -> str:
    """Name what would fit: a shorter context, a smaller quantization, no draft model."""
    advice = []
    together = [n for n in (target, draft) if n and n.n_ctx == target.n_ctx]  # share one --ctx
    total = target.total_bytes + (draft.total_bytes if draft else 0)
    per_token = sum(need.cache_bytes for need in together) / target.n_ctx
    too_much = total - room.total_bytes
    n_ctx = int(target.n_ctx - too_much / per_token) // 256 * 256 if per_token else 0
    n_ctx = min(n_ctx, target.n_ctx_train or n_ctx)
    if MIN_N_CTX <= n_ctx < target.n_ctx:
        advice.append(f"--ctx {n_ctx} fits")
    if smaller:
        advice.append(f"{smaller} fits")
    if draft and target.total_bytes <= room.total_bytes and too_much > 0:
        advice.append("--draft ngram fits")
    for_target = room.gpu_bytes - (draft.gpu_bytes if draft else 0)
    n_layers = layers_that_fit(target, for_target) if room.gpu_bytes else 0
    if 0 < n_layers < target.n_layers and too_much <= 0:
        advice.insert(0, f"--gpu-layers {n_layers} fits")
    if not advice:
        advice.append("a smaller model or a smaller quantization is wanted")
    return f"{'; '.join(advice)}; --force goes on all the same"
