import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { FieldBasis } from '../../../src/protocol/output.ts'
import type { RunInput } from '../../../src/protocol/task.ts'
import type { Corpus } from '../../../src/service/corpus/corpus.ts'
import { isolatedWork } from '../isolated/isolated-work.ts'
import { extractiveProcessor } from '../../../src/service/processor/extractive.ts'
import type {
  ProcessorProgress,
  ProcessorResult,
  ProcessorTask,
} from '../../../src/service/processor/processor.ts'
import { corpusOf, type Files } from '../corpus/folder.ts'

const PACKAGES: Files = {
  'rxjs/README.md': `# <img src="logo.png" alt="Logo"> RxJS: Reactive Extensions For JavaScript

[![npm version](https://badge.fury.io/js/rxjs.svg)](https://badge.fury.io/js/rxjs)

Curious what's next? Follow along with [the roadmap](roadmap.md).

Reactive Extensions Library for JavaScript. It needs at least Node.js 18.

[Apache 2.0 License](LICENSE.txt)

## Installation and Usage

Install it from npm:

\`\`\`shell
npm install rxjs
\`\`\`

It does not support CommonJS.

## Features

- typed observables
- operators without state
- schedulers for tests

## Support

It supports TypeScript out of the box.
`,
  'rxjs/CHANGELOG.md':
    '# Changelog\n\n## 7.8.2\n\nReleased on 2025-02-22 with 3 fixes.\n\n## 7.8.1\n\n- fixes a leak\n',
  '@scope/tool/README.md': '# @scope/tool\n\nA linter for prose.\n\n## Licence\n\nMIT © Somebody\n',
  'other/README.md':
    '# other\n\nOther is a parser that works well with rxjs.\n\nInstall with `npm install other`.\n\n## License\n\nISC\n',
}

const isolated = isolatedWork()

function run(corpus: Corpus, input: RunInput, more: Partial<ProcessorTask> = {}): Promise<ProcessorResult> {
  const task = { run_id: 'trun_1', input, context: [], report() {}, ...more }
  return extractiveProcessor(corpus, isolated).run(task, new AbortController().signal)
}

async function fieldsOf(
  input: RunInput['input'],
  properties: Record<string, unknown>,
  rest: Partial<RunInput> = {},
  files = PACKAGES,
) {
  const corpus = await corpusOf(files)
  const json_schema = { type: 'object', properties }
  const result = await run(corpus, {
    input,
    processor: 'base',
    task_spec: { output_schema: { type: 'json', json_schema } },
    ...rest,
  })
  expectCitationsToStand(corpus, result.output.basis)
  return { corpus, ...result }
}

/** Properties of every answer. */
function expectCitationsToStand(corpus: Corpus, basis: readonly FieldBasis[]): void {
  for (const { citations = [] } of basis) {
    for (const { url, title, excerpts } of citations) {
      const document = corpus.document(url)
      expect(title).toBe(document?.title)
      expect(excerpts?.length).toBeGreaterThan(0)
      for (const excerpt of excerpts ?? []) expect(document?.text).toContain(excerpt)
    }
  }
}

describe('a run with a JSON schema', () => {
  it('answers each field with text of the documents that the input names', async () => {
    const { output } = await fieldsOf(
      { package: 'rxjs' },
      {
        purpose: { type: 'string', description: 'what the package does' },
        licence: { type: 'string', description: 'its licence' },
        install: { type: 'string', description: 'how it is installed' },
      },
    )
    expect(output.content).toEqual({
      purpose: 'Reactive Extensions Library for JavaScript.',
      licence: 'Apache 2.0',
      install: 'npm install rxjs',
    })
    expect(output.basis.map(({ field }) => field)).toEqual(['purpose', 'licence', 'install'])
  })

  it('cites passages that contain the answer, with its reasoning and confidence', async () => {
    const { output } = await fieldsOf({ package: '@scope/tool' }, { licence: { type: 'string' } })
    expect(output).toMatchObject({ type: 'json', content: { licence: 'MIT' } })
    const [basis] = output.basis
    expect(basis?.citations?.[0]?.url).toMatch(/\/@scope\/tool\/README\.md$/)
    expect(basis?.citations?.[0]?.excerpts?.join()).toContain('MIT © Somebody')
    expect(basis?.reasoning).toContain('the documents named @scope/tool')
    expect(basis?.reasoning).toContain('under “Licence”')
    expect(basis?.confidence).toBe('high')
  })

  it('never uses what another document says of itself', async () => {
    const { output } = await fieldsOf(
      { package: '@scope/tool' },
      { install: { type: 'string', description: 'how it is installed' } },
    )
    expect(output.content).toEqual({ install: '' })
  })

  it('leaves empty what it does not find, with low confidence and without citations', async () => {
    const { output } = await fieldsOf(
      { package: 'rxjs' },
      {
        text: { type: 'string', description: 'flux capacitor calibration' },
        nullable: { type: ['string', 'null'], description: 'flux capacitor calibration' },
        list: { type: 'array', items: { type: 'string' }, description: 'flux capacitor calibration' },
        number: { type: 'number', description: 'flux capacitor calibration' },
      },
    )
    expect(output.content).toEqual({ text: '', nullable: null, list: [] })
    for (const basis of output.basis) {
      expect(basis).toMatchObject({ citations: [], confidence: 'low' })
      expect(basis.reasoning).toContain('left empty')
    }
    expect(output.basis).toHaveLength(4)
  })

  it.each([
    ['a number next to its words', { type: 'integer', description: 'fixes in the release' }, 3],
    ['a number within its bounds', { type: 'integer', description: 'minimum Node.js', minimum: 10 }, 18],
    ['a date', { type: 'string', format: 'date', description: 'released' }, '2025-02-22'],
    [
      'one of the allowed values',
      { enum: ['Apache', 'MIT', 'Apache 2.0'], description: 'licence' },
      'Apache 2.0',
    ],
    ['true for a statement', { type: 'boolean', description: 'supports TypeScript' }, true],
    ['false for what is denied', { type: 'boolean', description: 'supports CommonJS' }, false],
    [
      'the items of a list',
      { type: 'array', items: { type: 'string' }, description: 'features' },
      ['typed observables', 'operators without state', 'schedulers for tests'],
    ],
    [
      'at most maxItems items',
      { type: 'array', maxItems: 2, description: 'features' },
      ['typed observables', 'operators without state'],
    ],
    ['a string within maxLength', { type: 'string', maxLength: 20, description: 'licence' }, 'Apache 2.0'],
    [
      'an object, field by field',
      { type: 'object', properties: { licence: { type: 'string' } } },
      { licence: 'Apache 2.0' },
    ],
  ])('finds %s', async (_, schema, expected) => {
    const { output } = await fieldsOf({ package: 'rxjs' }, { value: schema })
    expect(output.content).toEqual({ value: expected })
    expect(output.basis).toHaveLength(1)
    expect(output.basis[0]?.citations?.length).toBeGreaterThan(0)
  })

  it('does not answer a boolean without evidence', async () => {
    const { output } = await fieldsOf(
      { package: 'rxjs' },
      { quantum: { type: ['boolean', 'null'], description: 'supports quantum computers' } },
    )
    expect(output.content).toEqual({ quantum: null })
  })

  it('uses only the sources that the run allows', async () => {
    const files = {
      'a.edu/x.md': '---\ndate: 2020-01-01\n---\nThe speed of the engine is 10 knots.',
      'b.org/x.md': '---\ndate: 2024-01-01\n---\nThe speed of the engine is 20 knots.',
    }
    const speed = { speed: { type: 'number', description: 'speed of the engine' } }
    const speedFor = async (source_policy: RunInput['source_policy'] & object) =>
      (await fieldsOf('engine', speed, { source_policy }, files)).output.content
    expect(await speedFor({ include_domains: ['.edu'] })).toEqual({ speed: 10 })
    expect(await speedFor({ exclude_domains: ['a.edu'] })).toEqual({ speed: 20 })
    expect(await speedFor({ after_date: '2023-01-01' })).toEqual({ speed: 20 })
  })

  it('warns of unsupported parts and answers the rest', async () => {
    const { output, warnings } = await fieldsOf(
      { package: 'rxjs' },
      { licence: { type: 'string', pattern: '^A' }, other: { contains: {} } },
    )
    expect(output.content).toMatchObject({ licence: 'Apache 2.0' })
    expect(warnings?.map(({ type }) => type)).toEqual(['spec_validation_warning'])
  })

  it('fails, with the field and the reason, when a required field has no value that its schema allows', async () => {
    const number = { type: 'number', description: 'How many zeppelins it has' }
    const properties = {
      b: { type: ['number', 'null'] },
      optional: { properties: { d: number }, required: ['d'] },
      c: { properties: { d: number }, required: ['d'] },
    }
    const corpus = await corpusOf(PACKAGES)
    const answer = (required: string[]) =>
      run(corpus, {
        input: { package: 'rxjs' },
        task_spec: { output_schema: { type: 'json', json_schema: { type: 'object', properties, required } } },
      })

    expect((await answer(['b'])).output.content).toEqual({ b: expect.toBeOneOf([null, expect.any(Number)]) })
    await expect(answer(['b', 'c'])).rejects.toThrow(
      'The documents do not say what the output schema requires. c.d: it is required, and nothing was found for it that its schema ' +
        'allows (number)',
    )
  })

  it('fails too when the field is a text: an empty one is no answer', async () => {
    const zeppelin = { type: 'string', description: 'Name of its zeppelin' }
    const corpus = await corpusOf(PACKAGES)
    const answer = (schema: object) =>
      run(corpus, {
        input: { package: 'rxjs' },
        task_spec: {
          output_schema: {
            type: 'json',
            json_schema: { type: 'object', properties: { zeppelin: schema }, required: ['zeppelin'] },
          },
        },
      })

    await expect(answer(zeppelin)).rejects.toThrow(
      'The documents do not say what the output schema requires. zeppelin: it is required, and nothing was found',
    )
    const { output } = await answer({ ...zeppelin, type: ['string', 'null'] })
    expect(output.content).toEqual({ zeppelin: null })
  })

  it.each([
    ['a date', { type: 'string', format: 'date', description: 'Released on' }, '2025-02-22'],
    ['a pattern within a sentence', { type: 'string', pattern: '^\\d{4}-\\d\\d$' }, '2025-02'],
    [
      'the second alternative',
      {
        anyOf: [
          { type: 'boolean', const: true },
          { type: 'integer', minimum: 3, maximum: 9 },
        ],
      },
      3,
    ],
    ['a constant', { const: 'release' }, 'release'],
    [
      'a list of objects',
      {
        type: 'array',
        items: { type: 'object', properties: { day: { type: 'string', format: 'date' } }, required: ['day'] },
      },
      [{ day: '2025-02-22' }],
    ],
  ])('takes %s', async (_, property, value) => {
    const files = { 'rxjs/CHANGELOG.md': '# rxjs\n\nIts release was released on 2025-02-22 with 3 fixes.\n' }
    const json_schema = { properties: { release: property }, required: ['release'] }
    const { output } = await run(await corpusOf(files), {
      input: 'rxjs',
      task_spec: { output_schema: { type: 'json', json_schema } },
    })
    expect(output.content).toEqual({ release: value })
  })

  it('is not held up by a pattern that backtracks without end', async () => {
    const files = { 'rxjs/README.md': `# rxjs\n\nThe name is ${'a'.repeat(60)}!\n` }
    const { output } = await fieldsOf('rxjs', { name: { type: 'string', pattern: '(a|a)*c$' } }, {}, files)
    expect(output.content).toEqual({})
  })

  it('warns of ignored parts of the input', async () => {
    const corpus = await corpusOf(PACKAGES)
    const { warnings } = await run(corpus, {
      input: 'What does rxjs do?',
      advanced_settings: { location: 'de' },
    })
    expect(warnings).toMatchObject([
      { type: 'input_validation_warning', detail: { parameter: 'advanced_settings.location' } },
    ])
  })

  it('uses a bare URL only for a field that requests one', async () => {
    const files = { 'rxjs/README.md': '# rxjs\n\n## Manual\n\nhttps://example.org/manual\n' }
    const { output } = await fieldsOf(
      'rxjs',
      { manual: { type: 'string', format: 'uri' }, manuals: { type: 'string' } },
      {},
      files,
    )
    expect(output.content).toEqual({ manual: 'https://example.org/manual', manuals: '' })
  })

  it('has no warnings without a reason', async () => {
    expect((await fieldsOf('rxjs', { licence: {} })).warnings).toBeUndefined()
  })

  it('is deterministic', async () => {
    const corpus = await corpusOf(PACKAGES)
    const input = {
      input: 'rxjs',
      task_spec: {
        output_schema: {
          type: 'json' as const,
          json_schema: { properties: { licence: {}, install: {}, purpose: {} } },
        },
      },
    }
    expect(await run(corpus, input)).toEqual(await run(corpus, input))
  })

  it('accepts any input and any schema, and cites verbatim', async () => {
    const corpus = await corpusOf(PACKAGES)
    const words = fc.constantFrom(
      'rxjs',
      'licence',
      'install',
      '"',
      'NEAR(',
      '*',
      '(?:',
      '__proto__',
      '\0',
      '🌍',
      'tool',
    )
    const text = fc.oneof(
      fc.string(),
      fc.array(words, { maxLength: 6 }).map((list) => list.join(' ')),
    )
    const property = fc.record(
      {
        type: fc.constantFrom('string', 'number', 'integer', 'boolean', 'array', 'object', 'null'),
        description: text,
        enum: fc.array(fc.oneof(text, fc.integer()), { maxLength: 3 }),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(text, fc.dictionary(text, fc.jsonValue())),
        fc.dictionary(text, property, { maxKeys: 4 }),
        async (input, properties) => {
          const { output } = await run(corpus, {
            input,
            task_spec: { output_schema: { type: 'json', json_schema: { properties } } },
          })
          expect(output.basis.map(({ field }) => field)).toEqual(Object.keys(properties))
          expectCitationsToStand(corpus, output.basis)
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe('a run that continues an interaction', () => {
  it.each([
    ['a question', 'What is @scope/tool?'],
    ['an object', '{"package":"@scope/tool"}'],
  ])('is about the subject of the earlier turn, %s', async (_, question) => {
    const corpus = await corpusOf(PACKAGES)
    const context = [{ question, answer: 'A linter for prose.' }]
    const { output } = await run(corpus, { input: 'And its licence?' }, { context })
    expect(output.content).toContain('MIT')
  })

  it('is about its own subject if it names one', async () => {
    const context = [{ question: 'What is @scope/tool?', answer: 'A linter for prose.' }]
    const { output } = await run(await corpusOf(PACKAGES), { input: 'Which license has rxjs?' }, { context })
    expect(output.content).not.toContain('MIT')
  })
})

describe('a run with an auto schema', () => {
  it('answers a list of things with a field for each, and says with which schema', async () => {
    const corpus = await corpusOf(PACKAGES)
    const { output } = await run(corpus, {
      input: 'What are the licence and the typescript support of rxjs?',
    })
    const nullable = (description: string) => ({ type: ['string', 'null'], description })
    expect(output).toMatchObject({
      type: 'json',
      output_schema: {
        type: 'object',
        properties: { licence: nullable('licence'), typescript_support: nullable('typescript support') },
        required: ['licence', 'typescript_support'],
        additionalProperties: false,
      },
    })
    expect(output.content).toMatchObject({ licence: 'Apache 2.0' })
  })

  it('answers the nulls of an object', async () => {
    const { output } = await run(await corpusOf(PACKAGES), { input: { package: 'rxjs', licence: null } })
    expect(output).toMatchObject({ type: 'json', content: { licence: 'Apache 2.0' } })
  })

  it('answers in prose if it finds none of them, or the question lists nothing', async () => {
    const corpus = await corpusOf(PACKAGES)
    for (const input of [
      'List the zeppelins of nobody',
      'The zeppelins and the airships of nobody',
      'What does rxjs do?',
      'rock and roll',
    ]) {
      expect((await run(corpus, { input })).output.type).toBe('text')
    }
  })
})

describe('the basis of each element', () => {
  const schema = {
    properties: {
      features: { type: 'array', items: { type: 'string' } },
      released: {
        description: 'Released on',
        type: 'array',
        items: { properties: { day: { type: 'string', format: 'date' } }, required: ['day'] },
      },
    },
  }
  const fields = async (elementBasis?: boolean) => {
    const corpus = await corpusOf(PACKAGES)
    const input = {
      input: 'rxjs',
      task_spec: { output_schema: { type: 'json' as const, json_schema: schema } },
    }
    const { output } = await run(corpus, input, elementBasis === undefined ? {} : { elementBasis })
    expectCitationsToStand(corpus, output.basis)
    return output.basis
  }

  it('follows that of its list, by index and by property', async () => {
    const basis = await fields(true)
    expect(basis.map(({ field }) => field)).toEqual([
      'features',
      'features.0',
      'features.1',
      'features.2',
      'released',
      'released.0.day',
    ])
    expect(basis.every(({ citations }) => citations?.length === 1)).toBe(true)
  })

  it('is only there when it is requested', async () => {
    expect((await fields()).map(({ field }) => field)).toEqual(['features', 'released'])
  })
})

describe('the progress of a run', () => {
  it('is a plan, each search with its result, and the sources that were read', async () => {
    const all: ProcessorProgress[] = []
    const json_schema = { properties: { licence: {}, zeppelin: { type: 'integer' } } }
    await run(
      await corpusOf(PACKAGES),
      { input: 'rxjs', task_spec: { output_schema: { type: 'json', json_schema } } },
      { report: (progress) => all.push(progress) },
    )
    expect(all.map(({ message }) => message?.kind)).toEqual(['plan', 'search', 'result', 'search', 'result'])
    expect(all[0]?.message?.text).toBe('Search the documents named rxjs for licence, zeppelin')
    expect(all[2]?.message?.text).toContain('licence: found "Apache 2.0" in')
    expect(all.map(({ meter }) => meter).filter((meter) => meter !== undefined)).toEqual([0, 50, 99])
    expect(all.at(-1)?.sourcesRead).toBeGreaterThan(0)
    expect(all.at(-1)?.sourcesSample?.[0]).toContain('rxjs')
  })
})

describe('a run with a text output', () => {
  it.each([
    ['no schema', undefined],
    ['an auto schema', { type: 'auto' as const }],
    ['a text schema', { type: 'text' as const, description: 'what it does' }],
    ['a bare description', 'what it does'],
  ])('answers in prose for %s, with one basis for the field output', async (_, output_schema) => {
    const corpus = await corpusOf(PACKAGES)
    const { output } = await run(corpus, {
      input: { package: 'rxjs' },
      task_spec: output_schema === undefined ? {} : { output_schema },
    })
    expect(output.type).toBe('text')
    expect(output.content).toContain('Reactive Extensions Library for JavaScript.')
    expect(output.basis.map(({ field }) => field)).toEqual(['output'])
    expectCitationsToStand(corpus, output.basis)
  })

  it('answers a question in a sentence', async () => {
    const corpus = await corpusOf(PACKAGES)
    const { output } = await run(corpus, { input: 'Does rxjs support TypeScript?', processor: 'lite' })
    expect(output.content).toBe('It supports TypeScript out of the box.')
  })

  it('answers at greater length with a processor that reads more', async () => {
    const facts = Array.from({ length: 6 }, (_, i) => `Fact ${i} on whales is well known.`)
    const corpus = await corpusOf({ 'a.md': `# Notes\n\n${facts.join('\n\n')}` })
    const sentencesOf = async (processor: string) =>
      String((await run(corpus, { input: 'whales', processor })).output.content).split('\n\n').length
    expect([await sentencesOf('lite'), await sentencesOf('base'), await sentencesOf('core')]).toEqual([
      1, 2, 4,
    ])
  })

  it('is not a bare URL, unless one was requested', async () => {
    const corpus = await corpusOf({
      'rxjs/README.md':
        '# rxjs\n\nhttps://example.org/rxjs.min.js\n\nValues over time, put together with ease.\n\nhttps://rxjs.dev\n',
    })
    const what = await run(corpus, { input: 'What does rxjs do?', processor: 'lite' })
    const where = await run(corpus, { input: 'What is the website of rxjs?', processor: 'lite' })
    expect(what.output.content).toBe('Values over time, put together with ease.')
    expect(where.output.content).toMatch(/^https:/)
  })

  it('says that the documents do not say if no document has the subject', async () => {
    const corpus = await corpusOf(PACKAGES)
    const { output } = await run(corpus, { input: 'quantum chromodynamics' })
    expect(output).toMatchObject({ type: 'text', basis: [{ citations: [], confidence: 'low' }] })
    expect(output.content).toMatch(/^The documents do not say/)
  })
})

describe('an aborted run', () => {
  it('stops before it starts', async () => {
    const corpus = await corpusOf(PACKAGES)
    const running = extractiveProcessor(corpus, isolated).run(
      { run_id: 'trun_1', input: { input: 'rxjs' }, context: [], report() {} },
      AbortSignal.abort(new Error('called off')),
    )
    await expect(running).rejects.toThrow('called off')
  })

  it('stops between two fields', async () => {
    const controller = new AbortController()
    const corpus = await corpusOf(PACKAGES)
    let searches = 0
    const counting: Corpus = {
      size: corpus.size,
      search: corpus.search,
      document: corpus.document,
      entity: corpus.entity,
      named: corpus.named,
      unusedTerms: corpus.unusedTerms,
      passages(query) {
        searches += 1
        controller.abort(new Error('called off'))
        return corpus.passages(query)
      },
      settled: () => corpus.settled(),
      onChange: (listener) => corpus.onChange(listener),
      close: () => corpus.close(),
    }
    const json_schema = { properties: { speed: {}, colour: {} } }
    const running = extractiveProcessor(counting, isolated).run(
      {
        run_id: 'trun_1',
        context: [],
        report() {},
        input: { input: 'rxjs', task_spec: { output_schema: { type: 'json', json_schema } } },
      },
      controller.signal,
    )
    await expect(running).rejects.toThrow('called off')
    // One over the documents of the name and one over all, for the first field.
    expect(searches).toBe(2)
  })
})

describe('the work of a run', () => {
  it('is bounded for an input with many names and no answer', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `name-${index}`)
    const corpus = await corpusOf(
      Object.fromEntries(names.map((name) => [`${name}/README.md`, `# ${name}\n\nIt is a tool.`])),
    )
    let searches = 0
    const counting: Corpus = {
      ...corpus,
      size: corpus.size,
      search: (query, budget) => ((searches += 1), corpus.search(query, budget)),
      passages: (query) => ((searches += 1), corpus.passages(query)),
    }
    const json_schema = { type: 'object', properties: { colour: { description: 'The colour of its hat' } } }
    await run(counting, { input: { names }, task_spec: { output_schema: { type: 'json', json_schema } } })
    // One for the field per name, and one over all documents.
    expect(searches).toBe(6 + 1)
  })

  it('is bounded for a question of thousands of words', async () => {
    const corpus = await corpusOf(PACKAGES)
    const description = Array.from({ length: 3_000 }, (_, index) => `word${index}`).join(' ')
    const json_schema = { type: 'object', properties: { colour: { description } } }
    const { output } = await run(corpus, {
      input: { package: 'rxjs' },
      task_spec: { output_schema: { type: 'json', json_schema } },
    })
    const [basis] = output.basis ?? []
    expect(basis?.reasoning.split('.')[0]?.split(' for ').at(-1)?.split(', ')).toHaveLength(32)
  })

  it('finds the same among very many allowed values', async () => {
    const values = Array.from({ length: 490 }, (_, index) => `value-${index}`)
    const { output } = await fieldsOf(
      { package: 'rxjs' },
      { license: { enum: [...values, 'Apache', 'Apache 2.0'] } },
    )
    expect(output.content).toEqual({ license: 'Apache 2.0' })
  })
})
