"""Runs contestants on this machine, and measures what passes cost on it."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from specli.assemble import Pair, open_session
from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.model import LlamaModel
from specli.bench.answering import Answering, answer_all
from specli.bench.clairvoyant import ngram_lengths, runs_of_right
from specli.bench.contest import Contestant, Entry, Task
from specli.bench.peer import PeerRun, PeerSettings, peer_command, run_peer
from specli.bench.prompts import Prompt
from specli.bench.records import Foresight, Passes, Run
from specli.chat import ChatTemplate, Message
from specli.engine.costs import N_MAX
from specli.engine.types import Row
from specli.errors import ModelError
from specli.loaded import load_draft
from specli.models.store import Located
from specli.settings import SamplingSettings, Settings

N_CTX = 4096
PASS_ROWS = (*range(1, 17), 20, 24, 32, 48, N_MAX)
N_TIMES = 3


@dataclass(frozen=True, slots=True)
class Machine:
    """The Runner. It loads models anew for every run, so that each is as cold as the peer's."""

    target: Located
    draft: Located
    peer: Path | None
    n_threads: int
    seed: int
    texts: Mapping[str, tuple[str, int]]  # by prompt id: what the model reads, and its tokens

    def run(self, entry: Entry, task: Task) -> Run:
        """Answer a prompt, cold."""
        if isinstance(entry, Contestant):
            (run,) = self.run_abreast([entry], task)
            return run
        peer = self._peer(entry, task)
        run = self._unmeasured(entry, task, peer.prompt_n)
        return replace(run, tokens=peer.tokens, seconds=peer.seconds, stats=asdict(peer))

    def run_abreast(self, contestants: Sequence[Contestant], task: Task) -> list[Run]:
        """Let contestants answer a prompt side by side, each cold, with models of its own."""
        text, _ = self.texts[task.prompt.id]
        sampling = SamplingSettings(task.temperature, top_k=0, top_p=1.0, min_p=0.0)
        settings = replace(self._settings, sampling=sampling, seed=self.seed)
        with ExitStack() as stack:
            answers = []
            for one in contestants:
                pair = Pair(self.target, "none" if one.draft == "none" else self.draft)
                session = stack.enter_context(open_session(pair, replace(settings, k=one.k)))
                events = iter(session.answerer.complete(text, task.max_tokens))
                answers.append(Answering(session, events))
            answer_all(answers)
        return [self._run(*both, task) for both in zip(contestants, answers, strict=True)]

    def key(self, entry: Entry, task: Task) -> tuple[object, ...]:
        """Return the key of the run that `run` would give."""
        _, prompt_n = self.texts[task.prompt.id]
        return self._unmeasured(entry, task, prompt_n).key

    def passes(self, plain: Run) -> Passes:
        """Measure what passes cost after the text of a plain run, the sizes in turn."""
        tokens = self._tokens(plain)
        with ExitStack() as stack:
            target = self._context(stack, LlamaModel(self.target.path), N_MAX)
            draft = self._context(stack, load_draft(self.draft.path, self._settings), 1)
            for context in (target, draft):
                _evaluate(context, tokens)
            target_s: dict[int, list[float]] = {n: [] for n in PASS_ROWS}
            draft_s = []
            for context in (target, draft):
                timed(context, tokens, 1, 1)  # the first of each is slower
            for _ in range(N_TIMES):
                for n, seconds in target_s.items():
                    seconds.append(timed(target, tokens, n, n))
                    draft_s.append(timed(draft, tokens, 1, 1))
        medians = {n: median(seconds) for n, seconds in target_s.items()}
        return Passes(plain.category, medians, median(draft_s), self.draft.path.name)

    def foresee(self, plain: Run) -> Foresight:
        """Find out how far the guesses at each position of a plain run are right."""
        tokens = self._tokens(plain)
        prompt, answer = tokens[: plain.prompt_n], tokens[plain.prompt_n :]
        with ExitStack() as stack:
            draft = self._context(stack, load_draft(self.draft.path, self._settings), N_MAX)
            rows = rows_after(draft, tokens, len(prompt) - 1)
            right = [bool(row.argmax() == token) for row, token in zip(rows, answer, strict=True)]
        return Foresight(
            plain.category,
            plain.prompt_id,
            plain.max_tokens,
            tuple(runs_of_right(right)),
            tuple(ngram_lengths(prompt, answer)),
        )

    def _run(self, contestant: Contestant, answer: Answering, task: Task) -> Run:
        if not answer.done or not answer.done.stats.predicted_n:
            raise ModelError(f"{contestant.name} has no answer")
        stats = answer.done.stats
        is_plain = contestant.group == "plain"
        return replace(
            self._unmeasured(contestant, task, stats.prompt_n),
            tokens=stats.predicted_n,
            seconds=stats.predicted_s,
            stats=stats.as_dict(),
            answer=answer.tokens if is_plain else (),
            draft="none" if is_plain else self.draft.path.name,
            k=contestant.k,
            reason=answer.done.reason,
            rounds=answer.rounds,
        )

    def _unmeasured(self, entry: Entry, task: Task, n_read: int) -> Run:
        """Return a run of which its conditions are known. n_read: tokens of the prompt."""
        prompt = task.prompt
        text, prompt_n = self.texts[prompt.id]
        if n_read != prompt_n:
            raise ModelError(f"{entry.name} read {n_read} tokens of {prompt.id}, not {prompt_n}")
        return Run(
            *(entry.name, prompt.category, prompt.id, digest(text), prompt_n),
            *(task.temperature, self.seed, task.max_tokens, task.repeat),
            tokens=0,
            seconds=0.0,
            draft=self.draft.path.name,
        )

    def _peer(self, settings: PeerSettings, task: Task) -> PeerRun:
        if self.peer is None:
            raise ModelError("there is no peer to run", "name its file with --peer")
        with TemporaryDirectory() as folder:
            prompt = Path(folder) / "prompt.txt"
            prompt.write_bytes(self.texts[task.prompt.id][0].encode())
            command = peer_command(
                self.peer,
                self.target.path,
                self.draft.path,
                prompt,
                settings,
                temperature=task.temperature,
                seed=self.seed,
                n_tokens=task.max_tokens,
                n_ctx=N_CTX,
                n_threads=self.n_threads,
            )
            return run_peer(command)

    def _tokens(self, plain: Run) -> list[int]:
        """Return the tokens of a plain run, prompt and answer."""
        with LlamaModel(self.target.path, vocabulary_only=True) as model:
            return [*model.vocabulary.tokenize(self.texts[plain.prompt_id][0]), *plain.answer]

    @property
    def _settings(self) -> Settings:
        return Settings(n_ctx=N_CTX, n_threads=self.n_threads)

    def _context(self, stack: ExitStack, model: LlamaModel, n_rows: int) -> LlamaContext:
        room = ContextSettings(N_CTX, n_rows, self.n_threads)
        return stack.enter_context(LlamaContext(stack.enter_context(model), room))


def render(target: Path, prompts: Sequence[Prompt]) -> dict[str, tuple[str, int]]:
    """Return by prompt id what the model reads, and how many tokens that is. Raises ModelError."""
    with LlamaModel(target, vocabulary_only=True) as model:
        vocabulary = model.vocabulary
        if not model.chat_template:
            raise ModelError(f"{target}: has no chat template")
        bos, eos = (
            vocabulary.text(token).decode("utf-8", "replace")
            for token in (vocabulary.bos, vocabulary.eos)
        )
        template = ChatTemplate(model.chat_template, bos, eos)
        texts = {p.id: template.render([Message("user", p.text)]) for p in prompts}
        return {name: (text, len(vocabulary.tokenize(text))) for name, text in texts.items()}


def rows_after(context: LlamaContext, tokens: Sequence[int], first: int) -> Iterator[Row]:
    """Yield the logits after each token of a text but the last, from position `first` on.

    Each (n_vocab,), to be looked at before the next one is asked for. The context has to be empty.
    """
    _evaluate(context, tokens[:first])
    for at in range(first, len(tokens) - 1, context.n_rows):
        step = tokens[at : min(at + context.n_rows, len(tokens) - 1)]
        yield from context.decode(step, len(step))


def _evaluate(context: LlamaContext, tokens: Sequence[int]) -> None:
    for at in range(0, len(tokens), context.n_batch):
        context.decode(tokens[at : at + context.n_batch], 0)


def timed(context: LlamaContext, tokens: Sequence[int], n: int, n_rows: int) -> float:
    """Return the seconds of one pass of n tokens after a text, which is left as it was."""
    some = (list(tokens) * n)[:n]
    started = time.perf_counter()
    context.decode(some, n_rows)
    seconds = time.perf_counter() - started
    context.truncate(len(tokens))
    return seconds


def digest(text: str) -> str:
    """Return what tells one prompt from others in records."""
    return sha256(text.encode()).hexdigest()
