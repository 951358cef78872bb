import { describe, expect, it } from 'vitest'
import type { RunInput } from '../../../src/protocol/task.ts'
import { extractiveProcessor } from '../../../src/service/processor/extractive.ts'
import type { ProcessorTask } from '../../../src/service/processor/processor.ts'
import { corpusOf, type Files } from '../corpus/folder.ts'
import { isolatedWork } from '../isolated/isolated-work.ts'

const manifest = (fields: Readonly<Record<string, unknown>>) => JSON.stringify(fields)

/** Documents with what has led to wrong answers: nested and vendored licences, disclaimers, numbers of pull requests. */
const DOCUMENTS: Files = {
  'kelp/package.json': manifest({
    name: 'kelp',
    version: '3.1.4',
    description: 'A client of tidal gauges',
    license: 'MIT',
    author: 'Ada Marsh <ada@example.org> (https://example.org)',
    engines: { node: '>=20.18.1' },
    homepage: 'https://kelp.example',
    repository: { type: 'git', url: 'git+https://github.com/marsh/kelp.git' },
  }),
  'kelp/README.md': `# kelp

A client of tidal gauges for Node.js.

It can also be tried without installing it, in the browser.

## Install

\`\`\`sh
npm install kelp
\`\`\`

## Options

- \`timeout\`: Time to wait for a gauge, in milliseconds. Default: \`3000\`.
- \`strict\`: Whether unknown gauges are refused. Default: \`false\`.

It was tested with reef, which is licensed under GPL-3.0.
`,
  'kelp/CHANGELOG.md': `# Changelog

## 3.1.0 (2024-05-03)

- Adds support for sonar gauges (#4472)
- Requires no Node flags (#5519)

## 3.0.0 (2023-01-15)

- Removes the callback interface
`,
  'kelp/lib/parser/LICENSE':
    'ISC License\n\nCopyright (c) 2010 Someone Else\n\nPermission to use, copy, modify.',
  'kelp/_vendor/qs/LICENSE.md': 'BSD 3-Clause License\n\nCopyright (c) 2014 Others\n\nAll rights reserved.',
  'acme.md': '# Acme\n\nAcme was founded in 1949 and makes anvils.\n',
  'gull/README.md': `# gull

Library number 4 is written in TypeScript.

Supported engines:

- Chrome >= 84
- Firefox >= 105

To use a beacon, set the option:

\`\`\`js
{ beacon: 'north' }
\`\`\`

\`\`\`ts
interface Options {
  // How many gulls may nest at once (default: 12)
  nestLimit: number
}
\`\`\`
`,
  'tern.md': `# Tern

Tern is a small message queue.

## Configuration

| Option | Default | Description |
|---|---|---|
| \`maxQueue\` | 512 | Maximum number of messages in memory |
| \`flushInterval\` | 250 ms | How often messages are written to disk |
`,
  'team.md':
    '# Team\n\nTern was founded in 2021 by Ada Kim. The maintainers are Ada Kim and Luis Ortega. The company has 14 employees.\n',
  'batteries.md': '# Batteries\n\nA solid state battery has a solid electrolyte.\n',
  'reef/README.md': '# reef\n\nA simulator of reefs.\n\n## License\n\nISC\n',
  'reef/LICENSE': `Copyright (c) 2015 Finn Brook

THE SOFTWARE IS PROVIDED "AS IS". IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM.`,
}

const isolated = isolatedWork()

async function ask(
  input: RunInput['input'],
  properties?: Record<string, unknown>,
  required: string[] = [],
  context: ProcessorTask['context'] = [],
  documents = DOCUMENTS,
) {
  const corpus = await corpusOf(documents)
  const json_schema = { type: 'object', properties, required }
  const output_schema =
    properties === undefined ? ({ type: 'text' } as const) : ({ type: 'json', json_schema } as const)
  const task = { run_id: 'trun_1', input: { input, task_spec: { output_schema } }, context, report() {} }
  const { output } = await extractiveProcessor(corpus, isolated).run(task, new AbortController().signal)
  for (const { url, excerpts } of output.basis.flatMap(({ citations }) => citations ?? [])) {
    for (const excerpt of excerpts ?? []) expect(corpus.document(url)?.text).toContain(excerpt)
  }
  return output
}

describe('a question in words', () => {
  it.each([
    [
      'its own licence, not that of a nested or vendored file',
      'Which licence does kelp have?',
      /^license: MIT$/,
    ],
    ['its author, not a disclaimer', 'Who is the author of reef?', /Finn Brook/],
    ['the command, not a sentence with the word', 'How is kelp installed?', /^npm install kelp$/],
    [
      'the minimum version of Node.js, not the number of a pull request',
      'Which Node version does kelp need?',
      /^engines\.node: >=20\.18\.1$/,
    ],
    ['a default, with the option that it is of', 'What is the default timeout of kelp?', /3000/],
    [
      'the changes of one version only',
      'What changed in version 3.0.0 of kelp?',
      /^Removes the callback interface$/,
    ],
    ['the version that added something', 'Which version of kelp added sonar gauges?', /3\.1\.0/],
    ['a language, without the word', 'Which language is gull written in?', /TypeScript/],
    ['a lowest version, by its sign', 'What is the lowest version of Firefox for gull?', /105/],
    ['what a sentence announces', 'Which option of gull is for a beacon?', /set the option:\n\n.*north/],
    ['the default in the comment above a declaration', 'What is the default nestLimit of gull?', /12/],
    ['what a thing is, by its description', 'author of the client of tidal gauges', /Ada Marsh/],
  ])('is answered with %s', async (_, question, expected) => {
    const { content } = await ask(question)
    expect(content).toMatch(expected)
  })

  it.each([
    ['nothing in the documents says', 'What is the market share of kelp?'],
    ['is about a thing without documents', 'What is the licence of leftpad-turbo?'],
    ['asks of an option that does not exist', 'What is the default maxGauges of kelp?'],
    ['asks for an attribute that is not stated', 'Which Node version does reef need?'],
    ['asks for a version without statements', 'What did kelp 2.1 remove?'],
    ['mixes a known attribute with something else', 'When is the birthday of the author of kelp?'],
  ])('that %s has no answer, no citation and low confidence', async (_, question) => {
    const { content, basis } = await ask(question)
    expect(content).toMatch(/^The documents do not say/)
    expect(basis).toMatchObject([{ citations: [], confidence: 'low' }])
  })
})

it('a question that continues an interaction is answered as if it named the subject', async () => {
  const question = 'Which language is gull written in?'
  const { content } = await ask(question)
  const next = await ask(
    'Which language is it written in?',
    undefined,
    [],
    [{ question, answer: String(content) }],
  )
  expect(next.content).toBe(content)
  expect(next.content).toMatch(/TypeScript/)
})

describe('a field of a schema', () => {
  it('has the value in the form that was asked for', async () => {
    const { content } = await ask(
      { package: 'kelp' },
      {
        licence: { enum: ['Apache-2.0', 'ISC', 'MIT'] },
        author: { type: 'string' },
        version: { type: 'string' },
        minimum_node: { type: 'integer', description: 'Lowest major version of Node.js' },
        repository: { type: 'string', format: 'uri' },
        timeout: { type: 'integer', description: 'Default of timeout, in ms' },
        strict: { type: 'boolean', description: 'Default of strict' },
      },
    )
    expect(content).toEqual({
      licence: 'MIT',
      author: 'Ada Marsh',
      version: '3.1.4',
      minimum_node: 20,
      repository: 'https://github.com/marsh/kelp',
      timeout: 3000,
      strict: false,
    })
  })

  it.each([undefined, 'The year', 'The year in which the company was founded'])(
    'is found whatever kind of thing its description calls the subject: %s',
    async (description) => {
      const { content } = await ask('When was Acme founded?', { founded: { type: 'integer', description } })
      expect(content).toEqual({ founded: 1949 })
    },
  )

  it('is not read from the manifest of another release than that of the input', async () => {
    const node = { minimum_node: { type: 'string', description: 'Lowest version of Node.js' } }
    const { content: earlier } = await ask('kelp 2.x', node)
    const { content: current } = await ask('kelp 3.x', node)
    expect([earlier, current]).toEqual([{ minimum_node: '' }, { minimum_node: '>=20.18.1' }])
  })

  it('is found in a statement that repeats a word of the question as its answer', async () => {
    const description = 'What electrolyte a solid state battery has'
    const { content } = await ask('Which electrolyte?', { electrolyte: { type: 'string', description } })
    expect(content).toEqual({ electrolyte: expect.stringContaining('solid') })
  })

  it('without an answer is null if it may be, and omitted if it is optional', async () => {
    const { content } = await ask(
      { package: 'reef' },
      {
        minimum_node: { type: ['integer', 'null'], description: 'Lowest major version of Node.js' },
        employees: { type: 'integer', description: 'Number of employees' },
      },
    )
    expect(content).toEqual({ minimum_node: null })
  })

  it('without an answer fails the run if it is required', async () => {
    const employees = { type: 'integer', description: 'Number of employees' }
    await expect(ask({ package: 'reef' }, { employees }, ['employees'])).rejects.toThrow(
      'employees: it is required',
    )
  })

  it('is empty if the only statement with the name is not likely enough', async () => {
    const employees = { type: ['integer', 'null'], description: 'How many employees the company has' }
    const { content } = await ask('Tern', { employees, founded: { type: ['integer', 'null'] } })
    expect(content).toMatchObject({ employees: null })
  })

  it('is empty if a statement has nothing of what is asked but the word for its kind', async () => {
    const employees = { type: ['integer', 'null'], description: 'number of employees' }
    const { content } = await ask('Tern', { employees, founded: { type: ['integer', 'null'] } })
    expect(content).toMatchObject({ employees: null })
  })

  it('is empty for a thing that no document is about', async () => {
    const { content } = await ask(
      { package: 'octopus' },
      { minimum_node: { type: ['integer', 'null'], description: 'Lowest major version of Node.js' } },
    )
    expect(content).toEqual({ minimum_node: null })
  })
})

describe('the confidence of an answer', () => {
  it('is high for what the manifest of the subject states, and says why', async () => {
    const { basis } = await ask({ package: 'kelp' }, { licence: { type: 'string' } })
    expect(basis[0]?.confidence).toBe('high')
    expect(basis[0]?.reasoning).toContain("the subject's own document")
    expect(basis[0]?.reasoning).toContain('has the form that was asked for')
  })

  it.each([
    ['the author, of whom a manifest states one', 'Who is the author of kelp?', 'high'],
    ['a maintainer, since it states the author', 'Who is the maintainer of kelp?', 'medium'],
    ['a maintainer that several documents name as the author', 'Who maintains otter?', 'medium'],
    ['a maintainer below such a heading', 'Who is the maintainer of tern?', 'high'],
  ])('in %s, is as high as the documents allow', async (_, question, confidence) => {
    const { basis } = await ask(question, undefined, [], [], {
      'kelp/package.json': manifest({ name: 'kelp', author: 'Ada Marsh' }),
      'otter/README.md': '# otter\n\nIt was created by Ada Marsh in 2024.\n',
      'otter/LICENSE': 'MIT License\n\nCopyright (c) 2024 Ada Marsh\n',
      'tern/README.md': '# tern\n\n## Maintainers\n\n- [Ada Marsh](https://ada.example)\n',
    })
    expect(basis[0]?.citations).not.toEqual([])
    expect(basis[0]?.confidence).toBe(confidence)
    expect(basis[0]?.reasoning.includes('the author, who need not be the maintainer')).toBe(
      confidence === 'medium',
    )
  })

  it('names the words of the question that are missing, and how likely the answer is', async () => {
    const { basis } = await ask('Can kelp be tried by sailors in the browser?')
    expect(basis[0]?.reasoning).toMatch(/without “sailors”; right with a likelihood of \d+ %/)
  })

  it('is not high for a sentence that has only some of the words of the question', async () => {
    const { basis } = await ask('Can kelp be tried by sailors in the browser?')
    expect(basis[0]?.citations).not.toEqual([])
    expect(basis[0]?.confidence).not.toBe('high')
  })
})
