"""Scripted replies of models: fences, cut-off and empty replies, answers, several turns, tool calls.

The semantics of the loop say what must happen: the run ends after so many replies, with that answer.
"""

from __future__ import annotations

import math

from suite.case import ReplyCase, Scripted

FENCE = "`" * 3


def block(code: str, language: str = "python") -> str:
    return f"{FENCE}{language}\n{code}\n{FENCE}"


ANSWER = "final_answer = 42"
GIVEN = block(ANSWER)


def reply(name, *replies, **rest) -> ReplyCase:
    theme = "replies: tool calls" if rest.get("loop") == "lean" else "replies"
    expected = {key: rest.pop(key) for key in list(rest) if key in ReplyCase.__dataclass_fields__}
    return ReplyCase(name=name, theme=theme, replies=replies, settings=rest, **expected)


def one(name, text, answer=42, **rest) -> ReplyCase:
    """One reply, which gives the answer."""
    return reply(name, text, answer=(answer,), steps=1, **rest)


def two(name, first, then=GIVEN, answer=42, **rest) -> ReplyCase:
    """A reply that is no answer, and that the model is told of, and one that is."""
    return reply(name, first, then, answer=(answer,), steps=2, **rest)


def value(name, code, value) -> ReplyCase:
    return one(f"final-{name}", block(f"final_answer = {code}"), value, stop="answered")


def calls(*made, text="") -> Scripted:
    return Scripted(text, "tool_calls", made)


FINAL = calls(("final_answer", '{"answer": 42}'))


def lean(name, call) -> ReplyCase:
    """A call that cannot be made, of which the model is told, and one that answers."""
    return two(name, calls(call), FINAL, loop="lean", shows=(call[0],) if call[0] == "nope" else ())


# fmt: off
CASES = (
    # reply_fences
    one('one-block', f'Let me see.\n\n{GIVEN}\n\nDone, final_answer = 1.'),
    one('several-blocks', f"{block('x = 40')}\nthen\n{block('x += 2')}\n{block('final_answer = x')}"),
    two('blocks-after-an-error', f"{block('x = 1 / 0')}\n{block('print(7 * 6)')}", shows=('ZeroDivisionError',), hides=('\n42',)),
    one('blocks-after-the-answer', f"{GIVEN}\n{block('final_answer = 1')}"),
    one('empty-block-first', f'{FENCE}python\n{FENCE}\n\n{GIVEN}'),
    two('empty-block-only', f'{FENCE}python\n{FENCE}'),
    one('no-label', block(ANSWER, '')),
    one('capital-label', block(ANSWER, 'Python')),
    one('tildes', f'~~~python\n{ANSWER}\n~~~'),
    one('four-backticks', f"{FENCE}`python\ns = '''\n{FENCE}\n'''\nfinal_answer = len(s)\n{FENCE}`", 5),
    one('fence-in-a-docstring', f"{FENCE}python\ns = '''\n{FENCE}python\nx\n{FENCE}\n'''\nfinal_answer = len(s)\n{FENCE}", 17),
    one('decorative-fence', f'{FENCE}\n{GIVEN}\n{FENCE}'),
    one('other-language-first', f"{block('a plan: compute it', 'text')}\n{GIVEN}"),
    two('other-language-only', block('x = [i for i in range(3)]\nprint(x)', 'text')),
    one('shell-block',
        f"{block('echo broken > made', 'bash')}\n{block('import os' + chr(10) + 'final_answer = os.path.exists(chr(109) + chr(97) + chr(100) + chr(101))')}",
        False),
    one('indented-in-a-list', f'1. First:\n\n   {FENCE}python\n   for i in range(2):\n       x = i + 41\n   final_answer = x\n   {FENCE}\n'),
    one('indented-body', block('    x = 41\n    if x:\n        x += 1\n    final_answer = x')),
    one('crlf-reply', f'{FENCE}python\r\nx = 42\r\nfinal_answer = x\r\n{FENCE}\r\n'),
    one('tabs', block('if True:\n\tx = 42\nfinal_answer = x')),
    one('unclosed-and-complete', f'{FENCE}python\n{ANSWER}'),
    two('unclosed-and-broken', f'{FENCE}python\nfinal_answer = (1,'),
    one('unclosed-then-another', f'{FENCE}python\nx = 42\n{FENCE}python\nfinal_answer = x\n{FENCE}'),
    one('closed-on-the-code-line', f'{FENCE}python\n{ANSWER}{FENCE}'),
    one('words-after-the-fence', f'{FENCE}python\n{ANSWER}\n{FENCE} and that is it'),
    one('inline-code', 'The value of `final_answer = 1` is 42.', 'The value of `final_answer = 1` is 42.'),
    reply('thousand-fences', '\n'.join([FENCE] * 1001) + f"\n{block('print(1)')}", *[GIVEN] * 3),
    reply('backtick-flood', '`' * 100000, *[GIVEN] * 3),
    reply('quote-flood', block('\'\'\'"""\n' * 20000), *[GIVEN] * 3),
    # reply_texts
    two('cut-off-in-a-block', Scripted(f'{FENCE}python\nfinal_answer = 1', 'length')),
    two('cut-off-after-a-block', Scripted(f"{block('final_answer = 1')}\nAnd now", 'length')),
    two('cut-off-prose', Scripted('The answer is 4', 'length')),
    two('content-filter', Scripted('The', 'content_filter')),
    two('empty-reply', ''),
    two('blank-reply', ' \n\t '),
    reply('empty-for-ever', '', '', '', '', '', answer=(), stop='repeated', steps=2),
    reply('unreadable-for-ever', '', ' ', '\n', '\t', '  ', answer=(), stop='malformed', steps=3),
    two('refusal', "I'm sorry, but I can't help with that."),
    reply('refusal-twice', 'I cannot help with that.', "I'm sorry, I am unable to do that.", 'x', stop='blocked', steps=2),
    one('answer-with-however', 'I cannot compute it exactly, however the result is 42.', 'I cannot compute it exactly, however the result is 42.'),
    one('text-answer', 'It is 42.', 'It is 42.'),
    one('final-answer-prefix', 'Final Answer: Paris', 'Paris'),
    one('final-answer-heading', '### Final Answer\nParis', 'Paris'),
    one('final-answer-bold', 'Thinking.\n\n**Final Answer:** Paris', 'Paris'),
    one('final-answer-in-prose', 'I would set final_answer to 42, I think.', 'I would set final_answer to 42, I think.'),
    two('prose-beside-code', f"The answer is 1.\n{block('print(6 * 7)')}", shows=('42',)),
    two('require-code', 'It is 41.', rules={'require_code': True}),
    # reply_answers
    value('none', 'None', None),
    value('zero', '0', 0),
    value('empty-text', "''", ''),
    value('false', 'False', False),
    value('empty-list', '[]', []),
    value('giant', '10 ** 3000', 10 ** 3000),
    value('text-with-braces', "'{x} {{}} %s'", '{x} {{}} %s'),
    one('final-nan', block("final_answer = float('nan')"), math.nan),
    one('final-by-call', block('final_answer(42)')),
    one('final-in-except', block('try:\n    final_answer(42)\nexcept Exception:\n    pass\nfinal_answer(1)'), needs='called-answer'),
    two('final-then-error', block('final_answer = 42\n1 / 0'), block('final_answer = final_answer'), shows=('ZeroDivisionError',), needs='named-answer'),
    one('final-then-error-and-out-of-steps', block('final_answer = 42\n1 / 0'), stop='steps', budget={'steps': 1}),
    two('final-deleted', block('final_answer = 1\ndel final_answer'), needs='named-answer'),
    two('final-printed', block("print('final_answer = 1')")),
    one('final-in-the-breaking-turn', GIVEN, stop='answered', budget={'output_tokens': 14}),
    two('final-in-the-last-step', block('print(1)'), stop='answered', budget={'steps': 2}),
    two('final-of-a-stopped-cell', block('final_answer = 1\nwhile True: pass'), budget={'cell_seconds': 0.5}),
    two('final-typed', block("final_answer = 'many'"), answer_type='int'),
    # reply_turns
    two('state-between-turns', block('x = 40'), block('final_answer = x + 2')),
    two('state-after-an-error', block('x = 40\n1 / 0'), block('final_answer = x + 2')),
    two('class-in-a-turn', block('class A:\n    v = 42'), block('final_answer = A.v')),
    two('exit-in-a-turn', block('raise SystemExit'), shows=('SystemExit',)),
    reply('death-in-a-turn', block('x = 1\nprint(x)'), block('import os; os._exit(1)'), GIVEN, answer=(42,), steps=3),
    two('loop-in-a-turn', block('while True: pass'), budget={'cell_seconds': 0.5}, needs='stops'),
    reply('same-reply-twice', *[block('print(1)')] * 6, stop='repeated', steps=2),
    reply('two-replies-in-turn', *[block('print(1)'), block('print(2)')] * 4, stop='repeated', steps=4),
    reply('same-code-other-result', block('n = 0\nprint(n)'), *[block('n += 1\nif n == 2: final_answer = n\nprint(n)')] * 2, answer=(2,), steps=3),
    reply('out-of-steps', *[block(f'print({n})') for n in range(5)], stop='steps', steps=3, budget={'steps': 3}),
    reply('no-steps', GIVEN, answer=(), stop='steps', steps=0, budget={'steps': 0}),
    two('giant-output-in-a-turn', block("print('head'); print('x' * 50_000_000); print('tail')"), shows=('head', 'tail')),
    two('silent-cell', block('x = 1')),
    two('braces-in-the-reply', f"{{x}} %s {{}}\n{block('print(chr(123) + chr(125))')}", shows=('{}',)),
    one('context-is-there', block('final_answer = context'), 'a\r\nb\x00{x}', context='a\r\nb\x00{x}'),
    two('context-overwritten', block('context = None'), block('final_answer = len(context)'), context='x' * 42),
    two('context-is-not-shown', block('print(len(context))'), block('final_answer = len(context)'), 960000, context='secret-text ' * 80000,
        hides=('secret-text secret-text secret-text secret-text secret-text',)),
    one('surrogates-in-the-reply', f'\ud800\n{GIVEN}'),
    two('nul-in-the-code', block('x = 1\x00')),
    reply('sub-call-in-a-cell', block("final_answer = llm_query('what?')"), 'forty-two', answer=('forty-two',), steps=1, needs='llm_query'),
    # reply_calls
    two('tool-call-where-there-are-none', calls(('python', '{"code": "1"}'))),
    reply('look-alike-tool-call', block('{"name": "python", "arguments": {"code": "1"}}', 'json'), GIVEN),
    one('look-alike-react', 'Action: python\nAction Input: import os; os._exit(1)', 'Action: python\nAction Input: import os; os._exit(1)'),
    reply('look-alike-tags', '<code>\nfinal_answer(1)\n</code>', GIVEN),
    lean('unknown-tool', ('nope', '{}')),
    lean('bad-json', ('python', '{"code": ')),
    lean('json-that-is-no-object', ('final_answer', '[42]')),
    lean('missing-argument', ('final_answer', '')),
    lean('extra-argument', ('final_answer', '{"answer": 1, "sure": true}')),
    one('final-beside-others', calls(('final_answer', '{"answer": 42}'), ('python', '{"code": "x = 1"}')), loop='lean'),
    one('two-finals', calls(('final_answer', '{"answer": 42}'), ('final_answer', '{"answer": 1}')), loop='lean'),
    one('falsy-final-call', calls(('final_answer', '{"answer": null}')), None, loop='lean'),
    reply('three-failing-calls', *[calls((f'nope{n}', '{}'), text=f'try {n}') for n in range(5)], stop='tool_failures', steps=3, loop='lean'),
)
