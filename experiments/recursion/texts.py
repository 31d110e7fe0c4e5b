"""Five wordings for a loop with sub-calls, and five for the same loop without; equal effort for both."""

from __future__ import annotations

_RULE = (
    "Solve the task by writing Python in a ```python block. It runs in a persistent REPL and you get its stdout. When "
    "you know the answer, set the variable final_answer in a code block."
)
_TASK = (
    "For example, the task\nThe context is a list of texts. How many of the texts are questions?\nis solved in two "
    "replies. The first:\n```python\n"
)
_THEN = "\n```\nThe result:\n3\nThe next reply:\n```python\nfinal_answer = 3\n```"
_ASK = 'llm_query("Is this a question? Answer yes or no.\\n" + text)'
_ONE_BY_ONE = (
    f'{_TASK}answers = [{_ASK} for text in context]\nprint(sum("yes" in answer.lower() for answer in answers)){_THEN}'
)
_BATCHED = (
    f'{_TASK}asked = ["Is this a question? Answer yes or no.\\n" + text for text in context]\n'
    'answers = llm_query_batched(asked)\nprint(sum("yes" in answer.lower() for answer in answers))'
    f"{_THEN}"
)
_READ = (
    f"{_TASK}for number, text in enumerate(context):\n    print(number, text)\n```\n"
    "The result:\n0 Is it late?\n1 I see.\n2 Who is there?\n3 Why not?\nTexts 0, 2 and 3 are questions. "
    "The next reply:\n```python\nfinal_answer = 3\n```"
)

#: With sub-calls (depth 1 and more).
ASKING = {
    "named": f"{_RULE} llm_query asks a language model.",
    "when": f"{_RULE} Code cannot understand a text: where one has to be understood, ask llm_query about it, one text "
    "at a time.",
    "solved": f"{_RULE}\n{_ONE_BY_ONE}",
    "batched": f"{_RULE}\n{_BATCHED}",
    "both": f"{_RULE} Code cannot understand a text: where one has to be understood, ask llm_query about it, one text "
    f"at a time, with a question that can be answered by yes or no.\n{_ONE_BY_ONE}",
}
#: Without: the model has to read the texts itself.
READING = {
    "named": f"{_RULE} Print a text to read it.",
    "when": f"{_RULE} Code cannot understand a text: where one has to be understood, print it and judge it yourself.",
    "solved": f"{_RULE}\n{_READ}",
    "numbered": f"{_RULE} Print the texts with their numbers, write down which ones count, and then count them.",
    "both": f"{_RULE} Code cannot understand a text: where one has to be understood, print it and judge it "
    f"yourself.\n{_READ}",
}
