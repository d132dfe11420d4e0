import json
from pathlib import Path

from ra.bench.runs import Conditions, compare
from ra.core.facts import Edited, Said, Spent
from ra.core.model import Usage
from ra.costs.prices import Prices
from ra.timeline.importers import read


def test_a_trajectory_of_swe_agent(tmp_path: Path) -> None:
    call = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    document = {
        "trajectory": [{"action": "ls", "observation": "a.py", "thought": "look"}],
        "history": [
            {"role": "system", "content": "You are an agent."},
            {"role": "user", "content": "Fix it."},
            {"role": "assistant", "content": "look", "tool_calls": [call], "agent": "main"},
            {"role": "tool", "content": [{"type": "text", "text": "a.py"}], "tool_call_ids": ["c1"]},
        ],
        "info": {"model_stats": {"api_calls": 1}},
    }
    (tmp_path / "one.traj").write_text(json.dumps(document, indent=2))
    (transcript,) = read(tmp_path / "one.traj")
    said = [event.fact.message for event in transcript.events if isinstance(event.fact, Said)]
    assert [message.role for message in said] == ["user", "assistant", "tool"]
    assert said[2].blocks[0].call_id == "c1"
    bare = {"trajectory": document["trajectory"]}
    (tmp_path / "two.traj").write_text(json.dumps(bare, indent=2))
    (transcript,) = read(tmp_path / "two.traj")
    roles = [event.fact.message.role for event in transcript.events if isinstance(event.fact, Said)]
    assert roles == ["assistant", "tool"]


def test_a_session_of_gemini_cli(tmp_path: Path) -> None:
    response = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "text of it"}}}
    answer = {
        "type": "gemini",
        "timestamp": "2026-01-02T03:04:10Z",
        "content": "Reading.",
        "model": "gemini-2.5-pro",
        "tokens": {"input": 5000, "output": 20, "cached": 4000, "thoughts": 30},
        "toolCalls": [
            {"id": "c1", "name": "read_file", "args": {"path": "a.py"}, "result": [response], "status": "success"}
        ],
    }
    document = {
        "sessionId": "s",
        "projectHash": "h",
        "startTime": "2026-01-02T03:04:05Z",
        "messages": [{"type": "user", "timestamp": "2026-01-02T03:04:05Z", "content": "Look at a.py"}, answer],
    }
    (tmp_path / "session.json").write_text(json.dumps(document, indent=2))
    (transcript,) = read(tmp_path / "session.json")
    assert transcript.model == "gemini-2.5-pro"
    facts = [event.fact for event in transcript.events]
    assert [fact.message.role for fact in facts if isinstance(fact, Said)] == ["user", "assistant", "tool"]
    assert [fact.usage for fact in facts if isinstance(fact, Spent)] == [Usage(1000, 50, 4000)]


def test_events_of_openhands(tmp_path: Path) -> None:
    def metrics(prompt: int, read: int) -> dict[str, object]:
        usage = {"prompt_tokens": prompt, "completion_tokens": prompt // 100, "cache_read_tokens": read}
        return {"accumulated_token_usage": usage | {"model": "claude-sonnet-4-5"}}

    about = {"function_name": "execute_bash", "tool_call_id": "t1", "model_response": {"model": "claude-sonnet-4-5"}}
    events = [
        {"id": 0, "source": "user", "action": "message", "message": "Fix it", "args": {"content": "Fix it"}},
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "look"},
         "tool_call_metadata": about, "llm_metrics": metrics(1000, 0)},
        {"id": 2, "source": "agent", "observation": "run", "content": "a.py", "cause": 1, "tool_call_metadata": about},
        {"id": 3, "source": "agent", "action": "message", "args": {"content": "Done"},
         "llm_metrics": metrics(2500, 900)},
    ]  # fmt: skip
    (tmp_path / "events.json").write_text(json.dumps(events, indent=1))
    (transcript,) = read(tmp_path / "events.json")
    facts = [event.fact for event in transcript.events]
    said = [fact.message for fact in facts if isinstance(fact, Said)]
    assert [message.role for message in said] == ["user", "assistant", "tool", "assistant"]
    assert said[2].blocks[0].call_id == said[1].calls[0].id == "t1"
    assert [fact.usage for fact in facts if isinstance(fact, Spent)] == [Usage(1000, 10), Usage(600, 15, 900)]


def test_context_edits_and_other_bills_of_pi(tmp_path: Path) -> None:
    def line(**entry: object) -> str:
        return json.dumps({"timestamp": "2026-01-02T03:04:05Z", **entry})

    usage = {"input": 10, "output": 1, "cacheRead": 5, "cacheWrite": 0}
    lines = [
        line(type="session", id="s", cwd="/w", version=3),
        line(type="message", id="a", parentId=None, message={"role": "user", "content": "old words"}),
        line(type="usage", id="u", parentId="a", kind="cache_warm", model="claude-opus-4-5", usage=usage),
        line(type="context_edit", id="e", parentId="u", targetId="a", replacement={"content": "new words"}),
        line(type="context_edit", id="f", parentId="e", targetId="a", replacement=None),
    ]
    (tmp_path / "pi.jsonl").write_text("\n".join(lines))
    (transcript,) = read(tmp_path / "pi.jsonl")
    assert transcript.skipped == []
    facts = [event.fact for event in transcript.events]
    edits = [[message.text for message in fact.messages] for fact in facts if isinstance(fact, Edited)]
    assert edits == [["new words"], []]
    assert [(fact.purpose, fact.usage) for fact in facts if isinstance(fact, Spent)] == [("agent", Usage(10, 1, 5))]


def test_a_transcript_whose_bills_count_nothing_is_estimated(tmp_path: Path) -> None:
    usage = {"input_tokens": 0, "output_tokens": 0}
    messages = [
        {"role": "user", "content": "hello " * 500},
        {"role": "assistant", "content": "yes " * 100, "model": "claude-opus-4-5", "usage": usage},
    ]
    (tmp_path / "list.json").write_text(json.dumps(messages))
    (transcript,) = read(tmp_path / "list.json")
    result = compare("f", "n", transcript.model, transcript.events, Conditions(Prices({}, None), ("nothing",)))
    assert result is not None
    assert result.calibration is None
    assert result.rows[1].cost > 0


def test_the_window_that_codex_recorded_is_used(tmp_path: Path) -> None:
    figures = {"input_tokens": 2000, "cached_input_tokens": 0, "output_tokens": 10}
    info = {"total_token_usage": figures, "last_token_usage": figures, "model_context_window": 123_000}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    lines = [
        {"type": "session_meta", "payload": {"id": "x", "cwd": "/w"}},
        {"type": "turn_context", "payload": {"model": "gpt-5.1"}},
        {"type": "response_item", "payload": asked},
        {"type": "response_item", "payload": said},
        {"type": "event_msg", "payload": {"type": "token_count", "info": info}},
    ]
    text = "\n".join(json.dumps({"timestamp": "2026-01-02T03:04:05Z", **line}) for line in lines)
    (tmp_path / "rollout.jsonl").write_text(text)
    (transcript,) = read(tmp_path / "rollout.jsonl")
    assert transcript.window == 123_000
