import { describe, expect, it } from 'vitest'
import { docComments } from '../../build/english/doc-comments.ts'
import { lint } from '../../build/english/lint.ts'
import { PATTERNS } from '../../build/english/patterns.ts'

/** For each rule, sentences that it finds, and a sentence that it leaves. */
const SENTENCES: readonly (readonly [rule: string, finds: readonly string[], leaves: string])[] = [
  [
    'opening',
    [
      'Of the process.',
      'What of a commit is not in the head.',
      'Those that are given up.',
      'All that a page needs.',
    ],
    'The states of a process, and those of its timers.',
  ],
  [
    'where-for-if',
    [
      'Where one stops, the others go on.',
      'The position; `null` where it has none.',
      'Rejects with a `LogError` where it is damaged.',
      '`undefined` where\nit is gone.',
    ],
    'The place where a schema begins. Where is it? Where a file is says its path.',
  ],
  [
    'where-within',
    ['An empty text where it is optional.', 'A process starts there, also where another one was.'],
    'A cursor stays where it is, and the process goes on where it was.',
  ],
  ['is-none', ['The token is none, has ended, or was revoked.'], 'The entry; undefined if there is none.'],
  ['as-good-as-none', ['An empty one is as good as none.'], 'The answer is as good as the best one.'],
  [
    'good-for-valid',
    ['A ticket is good once and for a minute.'],
    'A ticket works once, within a minute. A good test is short.',
  ],
  [
    'what-becomes-of',
    ['What becomes of an entry is in `deadLetters`.'],
    '`deadLetters` sets what happens to an entry. It becomes a dead letter.',
  ],
  ['said-by', ['The fate of an entry is said by `deadLetters`.'], 'The service says why.'],
  [
    'by-whatever',
    ['It is not recorded again, by whatever stream it comes.'],
    'It is not recorded again, whichever stream delivers it.',
  ],
  [
    'of-before',
    ['Positions of before the division are refused.'],
    'Positions from before sharing are rejected.',
  ],
  ['there-again', ['The log is there again once they are.'], 'The log recovers when they do, and is there.'],
  [
    'nothing-of',
    ['Newer servers have more; nothing of them is looked for.'],
    'Newer server features are not used. Nothing is deleted.',
  ],
  ['no-and-no', ['It is no error and no match.'], 'It is neither an error nor a match.'],
  ['as-of-when', ['A banner says as of when it is.'], 'A banner shows the time of the last update.'],
  [
    'of-now',
    ['The state as of now.', 'What stands by now is read.'],
    'The current state, and that of nowhere else.',
  ],
  [
    'without-end',
    ['It is retried without end.', 'A stream without an end.'],
    'It is retried forever, without endings.',
  ],
  ['go-by', ['Retries go by it.'], 'Retries use it. Days go by.'],
  [
    'never-a-second',
    ['It creates one run, and never a second by a retry.'],
    'A retry never creates another run.',
  ],
  [
    'no-longer',
    ['It is not polled any more.', 'It does not last any longer.'],
    'It is no longer polled, and has more events, so it takes any longer than usual.',
  ],
  [
    'old-word',
    ['The log, and the entries thereof.', 'Times, e.g. of a run.'],
    'The entries of the log, for example.',
  ],
  ['unit', ['At most 64 KB.'], 'At most 64 kB, 64 KiB or 2 MB, in `stream-10kb`.'],
  [
    'long-sentence',
    [`It ${'goes on and '.repeat(12)}ends.`],
    `It ${'goes on and '.repeat(6)}ends: it ${'goes on and '.repeat(6)}ends.`,
  ],
]

const rulesOf = async (text: string, file = 'page.md') => (await lint(file, text)).map(({ rule }) => rule)

describe('the English of pages', () => {
  it.each(SENTENCES)(
    'has a rule %s that finds its sentences and leaves others',
    async (rule, finds, leaves) => {
      expect(await Promise.all(finds.map((text) => rulesOf(text)))).toEqual(finds.map(() => [rule]))
      expect(await rulesOf(leaves)).toEqual([])
    },
  )

  it('has sentences for each rule', () => {
    expect(SENTENCES.map(([rule]) => rule)).toEqual([...PATTERNS.map(({ id }) => id), 'long-sentence'])
  })

  it('is read in paragraphs, headings, lists and cells, not in code', async () => {
    const found = await lint(
      'page.md',
      '# It is good once\n\n- It is good\n  once.\n\n| A |\n| - |\n| It is good once |\n\n```ts\nthrow "It is good once."\n```\n\nIt `is good once`.\n',
    )

    expect(found.map(({ line }) => line)).toEqual([1, 3, 8])
  })

  it('is read in the line comments of code, of which several lines are one text', async () => {
    const found = await lint(
      'page.md',
      'A program:\n\n```ts\n// It is good once.\nrun("https://example.com") // It is good\n// once, and is good\n  // for an hour.\n```\n',
    )

    expect(found.map(({ line }) => line)).toEqual([4, 6])
  })

  it('is reported with the words that are wrong', async () => {
    const [finding] = await lint('page.md', 'Returns `undefined` where it is gone.')

    expect(finding?.message).toBe('"`undefined` where": A condition begins with "if" or "when".')
  })
})

describe('the English of doc comments', () => {
  it('is reported with the line of the module', async () => {
    const module = [
      "const text = 'Of no comment.' // Of no doc comment.",
      '/** Of one line. */',
      '/**',
      ' * The sum.',
      ' *',
      ' * It is good',
      ' * once.',
      ' * ',
      ' * @param first Of the summands.',
      ' * @returns Of all.',
      ' */',
      'export function sum(first: number) {',
      '  /* Of no doc comment. */',
      '  return first /** Those of a line. */',
      '}',
    ]
    const found = await lint('src/sum.ts', module.join('\n'))

    expect(found.map(({ line, rule }) => [line, rule])).toEqual([
      [2, 'opening'],
      [6, 'good-for-valid'],
      [9, 'opening'],
      [10, 'opening'],
      [14, 'opening'],
    ])
  })

  it('is that of each comment alone', () => {
    expect(docComments('/** One. */\nconst a = 1\n\n/** Two. */\n').text).toBe('One.\n\nTwo.\n')
  })
})
