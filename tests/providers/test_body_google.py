"""What exactly is sent in the dialect google? Every case of the table, line by line."""

# What goes over a wire is compared line by line, as it is.
# ruff: noqa: E501
import pytest
from inline_snapshot import snapshot

from tests.providers.bodies import lines
from tests.providers.cases import CASES, Case

BODIES = snapshot(
    {
        "text": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"Hello"}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "thinking": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'tools[0] {"functionDeclarations":[{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"What is in a.py?"}]}',
            'contents[1] {"role":"model","parts":[{"text":"Let me look."},{"functionCall":{"name":"Read","args":{"path":"a.py"},"id":"call_1"},"thoughtSignature":"c2VhbC0x"}]}',
            'contents[2] {"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"print(1)"},"id":"call_1"}}]}',
            'generationConfig {"maxOutputTokens":8192,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2048}}',
        ],
        "thinking-without-a-call": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"2 + 2?"}]}',
            'generationConfig {"maxOutputTokens":24192,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":16000}}',
        ],
        "redacted-thinking": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"Go."}]}',
            'contents[1] {"role":"model","parts":[{"text":"Done."}]}',
            'contents[2] {"role":"user","parts":[{"text":"Go on."}]}',
            'generationConfig {"maxOutputTokens":8192,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2048}}',
        ],
        "model-change": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'tools[0] {"functionDeclarations":[{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"What is in a.py?"}]}',
            'contents[1] {"role":"model","parts":[{"text":"Let me look."},{"functionCall":{"name":"Read","args":{"path":"a.py"},"id":"call_1"}}]}',
            'contents[2] {"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"print(1)"},"id":"call_1"}}]}',
            'generationConfig {"maxOutputTokens":8192,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2048}}',
        ],
        "parallel-calls": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'tools[0] {"functionDeclarations":[{"name":"LS","description":"List a directory."},{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"Look around."}]}',
            'contents[1] {"role":"model","parts":[{"text":"Looking."},{"functionCall":{"name":"Read","args":{"path":"a"},"id":"call_1"}},{"functionCall":{"name":"LS","args":{},"id":"call_2"}}]}',
            'contents[2] {"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"A"},"id":"call_1"}},{"functionResponse":{"name":"LS","response":{"output":"a"},"id":"call_2"}}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "empty-text": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"Say nothing."},{"text":"Again."}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "image": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'tools[0] {"functionDeclarations":[{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"What is this?"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}]}',
            'contents[1] {"role":"model","parts":[{"functionCall":{"name":"Read","args":{"path":"a"},"id":"call_1"}}]}',
            'contents[2] {"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"A picture:"},"id":"call_1"}},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "pdf": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'tools[0] {"functionDeclarations":[{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"Sum up."},{"inlineData":{"mimeType":"application/pdf","data":"JVBERi0xLjQKJSVFT0YK"}}]}',
            'contents[1] {"role":"model","parts":[{"functionCall":{"name":"Read","args":{"path":"a"},"id":"call_1"}}]}',
            'contents[2] {"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"<document name=\\"b.txt\\">\\nx < y\\n</document>"},"id":"call_1"}}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "unicode": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"你好, 世界 👩\u200d👩\u200d👧\u200d👦 é \u2028 \\u0000 </context>"}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "tool-error": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'tools[0] {"functionDeclarations":[{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"Read a."}]}',
            'contents[1] {"role":"model","parts":[{"functionCall":{"name":"Read","args":{"path":"a"},"id":"call_1"}}]}',
            'contents[2] {"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"error":"No such file."},"id":"call_1"}},{"text":"Then stop."}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "length": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"Count."}]}',
            'generationConfig {"maxOutputTokens":16}',
        ],
        "refusal": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"Do harm."}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "refusal-without-words": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"Do harm."}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "usage-with-cache": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"Hello"}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "marks": [
            'systemInstruction {"parts":[{"text":"Be brief.\\n\\na.py\\nb.py"}]}',
            'tools[0] {"functionDeclarations":[{"name":"LS","description":"List a directory."},{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"Go."}]}',
            'contents[1] {"role":"model","parts":[{"text":"On it."},{"functionCall":{"name":"Read","args":{"path":"a"},"id":"call_1"}}]}',
            'contents[2] {"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"A"},"id":"call_1"}}]}',
            'contents[3] {"role":"model","parts":[{"text":"Hm.","thought":true,"thoughtSignature":"seal"}]}',
            'contents[4] {"role":"user","parts":[{"text":"Well?"}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "system-message": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'tools[0] {"functionDeclarations":[{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"Go."}]}',
            'contents[1] {"role":"model","parts":[{"functionCall":{"name":"Read","args":{"path":"a"},"id":"call_1"}}]}',
            'contents[2] {"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"A"},"id":"call_1"}},{"text":"<context name=\\"env &quot;1&quot;\\">\\nThe branch is now <main>.\\n</context>"}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "user-section": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"Remember the milk."},{"text":"What?"}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "malformed-arguments": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'tools[0] {"functionDeclarations":[{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"Read a."}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "malformed-arguments-sent-again": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'tools[0] {"functionDeclarations":[{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"Read a."}]}',
            'contents[1] {"role":"model","parts":[{"functionCall":{"name":"Read","args":{"invalid_json":"{\\"path\\": \\"a.py\\"oops}"},"id":"call_1"}}]}',
            'contents[2] {"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"error":"The arguments are no JSON."},"id":"call_1"}}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "length-inside-a-call": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'tools[0] {"functionDeclarations":[{"name":"Read","description":"Read a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}',
            'contents[0] {"role":"user","parts":[{"text":"Read a."}]}',
            'generationConfig {"maxOutputTokens":16}',
        ],
        "cut": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"Hello"}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
        "error-in-the-stream": [
            'systemInstruction {"parts":[{"text":"Be brief."}]}',
            'contents[0] {"role":"user","parts":[{"text":"Hello"}]}',
            'generationConfig {"maxOutputTokens":8192}',
        ],
    }
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_body(case: Case) -> None:
    assert lines("google", case) == BODIES[case.name]
