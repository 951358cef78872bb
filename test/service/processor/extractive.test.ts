import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { FieldBasis } from '../../../src/protocol/output.ts'
import type { RunInput } from '../../../src/protocol/task.ts'
import type { Corpus } from '../../../src/service/corpus/corpus.ts'
import { extractiveProcessor } from '../../../src/service/processor/extractive.ts'
import type { RunResult } from '../../../src/service/processor/processor.ts'
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

function run(corpus: Corpus, input: RunInput): Promise<RunResult> {
  const task = { run_id: 'trun_1', input, context: [], report() {} }
  return extractiveProcessor(corpus).run(task, new AbortController().signal)
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
      licence: 'Apache 2.0 License',
      install: 'npm install rxjs',
    })
    expect(output.basis.map(({ field }) => field)).toEqual(['purpose', 'licence', 'install'])
  })

  it('cites passages that contain the answer, with its reasoning and confidence', async () => {
    const { output } = await fieldsOf({ package: '@scope/tool' }, { licence: { type: 'string' } })
    expect(output).toMatchObject({ type: 'json', content: { licence: 'MIT © Somebody' } })
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
    [
      'a string within maxLength',
      { type: 'string', maxLength: 20, description: 'licence' },
      'Apache 2.0 License',
    ],
    [
      'an object, field by field',
      { type: 'object', properties: { licence: { type: 'string' } } },
      { licence: 'Apache 2.0 License' },
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
      { licence: { type: 'string', pattern: '^A' }, other: { minItems: 1 } },
    )
    expect(output.content).toMatchObject({ licence: 'Apache 2.0 License' })
    expect(warnings?.map(({ type }) => type)).toEqual(['spec_validation_warning', 'spec_validation_warning'])
  })

  it('warns when a required non-nullable field is null', async () => {
    const corpus = await corpusOf(PACKAGES)
    const number = { type: 'number', description: 'How many zeppelins it has' }
    const json_schema = {
      type: 'object',
      properties: {
        a: number,
        b: { type: ['number', 'null'] },
        c: { properties: { d: number }, required: ['d'] },
      },
      required: ['a', 'b', 'c'],
    }
    const { output, warnings } = await run(corpus, {
      input: { package: 'rxjs' },
      task_spec: { output_schema: { type: 'json', json_schema } },
    })
    expect(output.content).toMatchObject({ a: null, c: { d: null } })
    expect(warnings?.map(({ type, detail }) => [type, detail])).toEqual([
      ['spec_validation_warning', { field: 'a' }],
      ['spec_validation_warning', { field: 'c.d' }],
    ])
  })

  it('warns of ignored parts of the input', async () => {
    const corpus = await corpusOf(PACKAGES)
    const { warnings } = await run(corpus, {
      input: 'What does rxjs do?',
      previous_interaction_id: 'trun_0',
      memory_scope_key: 'mine',
      mcp_servers: [{ type: 'url', url: 'https://example.org/', name: 'tools' }],
      advanced_settings: { location: 'de' },
    })
    expect(warnings?.map(({ type, detail }) => [type, detail])).toEqual(
      ['previous_interaction_id', 'memory_scope_key', 'mcp_servers', 'advanced_settings.location'].map(
        (parameter) => ['input_validation_warning', { parameter }],
      ),
    )
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

  it('is empty if no document has the subject', async () => {
    const corpus = await corpusOf(PACKAGES)
    const { output } = await run(corpus, { input: 'quantum chromodynamics' })
    expect(output).toMatchObject({ type: 'text', content: '', basis: [{ citations: [], confidence: 'low' }] })
  })
})

describe('an aborted run', () => {
  it('stops before it starts', async () => {
    const corpus = await corpusOf(PACKAGES)
    const running = extractiveProcessor(corpus).run(
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
      passages(query) {
        searches += 1
        controller.abort(new Error('called off'))
        return corpus.passages(query)
      },
      settled: () => corpus.settled(),
      onChange: (listener) => corpus.onChange(listener),
      close: () => corpus.close(),
    }
    const json_schema = { properties: { licence: {}, install: {} } }
    const running = extractiveProcessor(counting).run(
      {
        run_id: 'trun_1',
        context: [],
        report() {},
        input: { input: 'rxjs', task_spec: { output_schema: { type: 'json', json_schema } } },
      },
      controller.signal,
    )
    await expect(running).rejects.toThrow('called off')
    expect(searches).toBe(1)
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
    // One search per candidate name, two for the field per name of a document, and one over all documents.
    expect(searches).toBe(6 + 6 * 2 + 1)
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
