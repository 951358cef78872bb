import { describe, expect, it } from 'vitest'
import { extractiveProcessor } from '../../../src/service/processor/extractive.ts'
import { corpusOf, type Files } from '../corpus/folder.ts'
import { isolatedWork } from '../isolated/isolated-work.ts'

/** Documents made for these tests: marked values, tables, lists, defaults, quantities and denials. */
const DOCUMENTS: Files = {
  'heron/README.md': `# heron

A scheduler of nests for Node.js.

## Nests

Use \`openNest()\` to start a colony. For a quiet colony, call \`whisper()\` instead of \`shout()\`.

The \`brood\` option is only read by the \`worker_threads\` runtime. Its values are \`'early'\`, \`'late'\` and \`'never'\`.

Set the \`HERON_HOME\` variable to move the folder of eggs. The colony is described in \`heron.config.json\`.

\`peek()\` now returns a \`Nest | undefined\` instead of a \`Nest | null\`.

The eggs are painted with ochre. The nests are written in Rust.

A retry follows upon an ESTORM or EFLOOD error.

Hatching is not supported on islands, but moulting is supported.

The keeper waits for 2 minutes before he feeds. An egg may have up to 3 KB.

### countEggs(nest)

Gives the total of the eggs in a nest.

## Options

| Option | Type | Default | Description |
|---|---|---|---|
| \`wingspan\` | \`number\` | \`180\` | Width of the wings in centimetres |
| \`plumage\` | \`'grey' \\| 'white'\` | \`'grey'\` | Colour of the feathers |
| \`ringed\` | \`boolean\` | \`true\` | Whether a heron has a ring |

## Feathers

The available feathers are:

- \`down\`, which is soft
- \`quill\`, which is stiff
- \`bristle\`, for the beak

## Support

| Line | Node.js | End of care |
|---|---|---|
| 2.x | 18, 20 | 2025-04-30 |
| 3.x | 20, 22 | 2027-09-01 |
`,
}

const isolated = isolatedWork()

async function ask(input: string | Record<string, unknown>, properties: Record<string, unknown>) {
  return (await outputOf(input, properties)).content
}

async function outputOf(input: string | Record<string, unknown>, properties: Record<string, unknown>) {
  const corpus = await corpusOf(DOCUMENTS)
  const json_schema = { type: 'object', properties }
  const task_spec = { output_schema: { type: 'json' as const, json_schema } }
  const task = { run_id: 'trun_1', input: { input, task_spec }, context: [], report() {} }
  const { output } = await extractiveProcessor(corpus, isolated).run(task, new AbortController().signal)
  return output
}

const text = (description: string) => ({ type: 'string', description })
const list = (description: string) => ({ type: 'array', items: { type: 'string' }, description })

describe('a text field that asks for a short value', () => {
  it.each([
    ['a function in code marks', 'function', text('Function that starts a colony'), 'openNest()'],
    ['the value that replaces another', 'new_call', text('Call that makes a colony quiet'), 'whisper()'],
    ['the type before a change', 'old_type', text('What peek() returned before'), 'Nest | null'],
    ['the type after a change', 'new_type', text('What peek() returns now'), 'Nest | undefined'],
    [
      'the mark nearest to the word',
      'runtime',
      text('Runtime that reads the brood option'),
      'worker_threads',
    ],
    ['a variable', 'variable', text('Environment variable for the folder of eggs'), 'HERON_HOME'],
    ['a file', 'file', text('File that describes the colony'), 'heron.config.json'],
    ['the name above its description', 'counter', text('Function for the total of the eggs'), 'countEggs'],
    ['a name without marks after its verb', 'paint', text('Product that the eggs are painted with'), 'ochre'],
    ['a language', 'language', text('Language that the nests are written in'), 'Rust'],
    [
      'the first cell of the row that is described',
      'option',
      text('Option for the width of the wings'),
      'wingspan',
    ],
    ['the cell below the column of its name', 'type', text('Type of plumage'), "'grey' | 'white'"],
    ['the cell of a default', 'default', text('Default of plumage'), 'grey'],
    ['the thing of a noun with a clause', 'feather', text('Plume that is stiff'), 'quill'],
  ])('is %s', async (_, name, schema, expected) => {
    expect(await ask({ package: 'heron' }, { [name]: schema })).toEqual({ [name]: expected })
  })

  it('is left unknown if the statement has no value of its shape', async () => {
    const content = await ask(
      { package: 'heron' },
      { file: text('File about the total of the eggs in a nest') },
    )
    expect(content).toEqual({ file: '' })
  })

  it('is a statement if its description asks for words', async () => {
    const content = await ask(
      { package: 'heron' },
      { how: text('A sentence about the function that starts a colony') },
    )
    expect(content).toEqual({ how: 'Use `openNest()` to start a colony.' })
  })
})

describe('a field with allowed values', () => {
  const oneOf = (description: string, ...allowed: string[]) => ({ ...text(description), enum: allowed })

  it('is the cell of a default, not another value of its row', async () => {
    const { content, basis } = await outputOf(
      { package: 'heron' },
      { plumage: oneOf('Default of plumage', 'white', 'grey', 'number') },
    )
    expect(content).toEqual({ plumage: 'grey' })
    expect(basis).toMatchObject([{ field: 'plumage' }])
  })

  it('is the nearest to the question, and never of high confidence, if its statement has several', async () => {
    const { content, basis } = await outputOf(
      { package: 'heron' },
      { supported: oneOf('What is supported after islands', 'hatching', 'moulting') },
    )
    expect(content).toEqual({ supported: 'moulting' })
    expect(basis[0]?.reasoning).toContain('the nearest of several values in the statement')
    expect(basis[0]?.confidence).not.toBe('high')
  })

  it('says so of a number that is the nearest of several', async () => {
    const { basis } = await outputOf(
      { package: 'heron' },
      { eggs: { type: 'integer', description: 'Line of Node.js 18' } },
    )
    expect(basis[0]?.reasoning).toContain('the nearest of several values in the statement')
    expect(basis[0]?.confidence).not.toBe('high')
  })

  it('is no part of a longer value', async () => {
    const content = await ask(
      { package: 'heron' },
      {
        when: {
          type: 'array',
          items: oneOf('', 'minutes', '2 minutes'),
          description: 'When the keeper feeds',
        },
      },
    )
    expect(content).toEqual({ when: ['2 minutes'] })
  })
})

describe('a list of short values', () => {
  it.each([
    ['the values in a sentence', list('Values of the brood option'), ['early', 'late', 'never']],
    ['words in capitals', list('Error codes upon which a retry follows'), ['ESTORM', 'EFLOOD']],
    [
      'the heads of the list that a sentence announces',
      list('Available feathers'),
      ['down', 'quill', 'bristle'],
    ],
  ])('has %s', async (_, schema, expected) => {
    expect(await ask({ package: 'heron' }, { values: schema })).toEqual({ values: expected })
  })
})

describe('a row of a table', () => {
  it('is the one that the input names, for all fields', async () => {
    const content = await ask('Support of heron 3.x', {
      nodejs: { type: 'string', description: 'Versions of Node.js' },
      end_of_care: { type: 'string', format: 'date', description: 'End of care' },
    })
    expect(content).toMatchObject({ end_of_care: '2027-09-01' })
  })

  it('gives a default as a number or a boolean', async () => {
    const content = await ask('heron: defaults of its options', {
      wingspan: { type: 'integer', description: 'Default of wingspan' },
      ringed: { type: 'boolean', description: 'Default of ringed' },
    })
    expect(content).toEqual({ wingspan: 180, ringed: true })
  })
})

describe('a quantity', () => {
  it.each([
    ['wait_ms', 'How long the keeper waits before he feeds', 120_000],
    ['wait', 'Time that the keeper waits before he feeds, in seconds', 120],
    ['egg_bytes', 'How many bytes an egg may have', 3_072],
  ])('is converted to the unit that %s asks for', async (name, description, expected) => {
    const content = await ask({ package: 'heron' }, { [name]: { type: 'integer', description } })
    expect(content).toEqual({ [name]: expected })
  })
})

describe('a boolean', () => {
  it.each([
    ['the denial in its clause', 'Whether hatching is supported on islands', false],
    ['no denial of another clause', 'Whether moulting is supported', true],
    ['the denial that the question has too', 'Whether hatching is not supported on islands', true],
  ])('follows %s', async (_, description, expected) => {
    const content = await ask({ package: 'heron' }, { value: { type: 'boolean', description } })
    expect(content).toEqual({ value: expected })
  })
})

describe('confidence of a short value', () => {
  const variable = { variable: text('Variable that moves the folder of eggs of heron') }

  it('is high for the only value of a statement with all words of the question', async () => {
    const { content, basis } = await outputOf('heron', variable)
    expect(content).toEqual({ variable: 'HERON_HOME' })
    expect(basis[0]).toMatchObject({ confidence: 'high' })
  })

  it('is not high for the nearest of several values, and says why', async () => {
    const { content, basis } = await outputOf('heron', {
      function: text('Function to call for a quiet colony of heron'),
    })
    expect(content).toEqual({ function: 'whisper()' })
    expect(basis[0]).toMatchObject({
      confidence: 'medium',
      reasoning: expect.stringContaining('the nearest of several values in the statement'),
    })
  })
})
