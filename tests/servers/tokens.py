# SPDX-License-Identifier: Apache-2.0
"""Counts tokens about as a vocabulary of 50,000 tokens does that takes each digit alone (SmolLM2's: within a fifth for
prose, code, numbers, hexadecimal, base64, Hindi and Chinese)."""
import json
import re

DENSE = re.compile(r"[A-Za-z0-9+/=]{16,}")
PART = re.compile(r"[A-Za-z]{1,6}|[0-9]|[^\x00-\x7f]|[^\sA-Za-z0-9]{1,2}|\n| (?=[0-9])|\s{2,8}")
MESSAGE = 6  # of a message's role and marks


def of_text(text):
    count = 0

    def dense(match):
        nonlocal count
        if not any(character.isdigit() for character in match[0]):
            return match[0]
        count += len(match[0]) * 5 // 6
        return " "
    for part in PART.findall(DENSE.sub(dense, text)):
        count += max(1, len(part.encode()) - 1) if ord(part[0]) > 127 else 1
    return count


def of_request(body):
    count = of_text(json.dumps(body["tools"])) * 4 // 5 if body.get("tools") else 0
    for message in body["messages"]:
        count += MESSAGE + of_text(message.get("content") or "") + of_text(message.get("thinking") or "")
        for call in message.get("tool_calls", []):
            arguments = call["function"]["arguments"]
            count += of_text(call["function"]["name"]) + of_text(
                arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))
    return count
