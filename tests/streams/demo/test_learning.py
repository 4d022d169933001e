"""What `pml demo --learn` does where a part of it does not end."""

from __future__ import annotations

from pathlib import Path

import pytest

from pml.streams.demo import learning
from pml.streams.demo.learning import Plan
from pml.streams.learning.limited import TrainingFailed
from pml.streams.settings import Settings


async def test_a_training_that_does_not_end_in_time_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "TRAINING_TIMEOUT_S", 0)
    with pytest.raises(TrainingFailed, match="did not end within 0 s"):
        await learning._trained(Settings.load(data_dir=tmp_path / "data"), Plan(recorded=1, played=1))
