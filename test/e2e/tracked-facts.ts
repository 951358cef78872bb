import type { Processor } from 'rivulet/service'
import { expect, onTestFinished } from 'vitest'
import { createIsolated } from '../../src/service/isolated/isolated.ts'
import { extractiveProcessor } from '../../src/service/processor/extractive.ts'
import type { Files } from '../service/corpus/folder.ts'
import type { Research } from './research.ts'

/** The facts of a document, as a snapshot of them has them. */
export interface Facts {
  readonly maintainer: string
  readonly license: string
}

export const FIRST: Facts = { maintainer: 'Anna Keller', license: 'MIT' }

/** What changes at each day of the month; nothing on other days. */
export const CHANGES: Readonly<Record<number, Partial<Facts>>> = {
  2: { license: 'ISC' },
  9: { maintainer: 'Max Meier' },
  10: { maintainer: 'Ruth Frei', license: 'Apache 2.0' },
  21: { maintainer: 'Anna Keller', license: 'MIT' },
  30: { license: 'ISC' },
}

/** The documents on a day. */
export const readme = ({ maintainer, license }: Facts, day: number) => ({
  'tidelib/README.md': `# tidelib\n\nA library.\n\n## Maintainer\n\n${maintainer}\n\n## License\n\n${license}\n`,
  // Documents that do not answer change every day.
  'notes/diary.md': `# Diary\n\nOn day ${day} the sea was calm.\n`,
})

const SPEC = {
  output_schema: {
    type: 'json',
    json_schema: {
      type: 'object',
      properties: { maintainer: { type: 'string' }, license: { type: 'string' } },
    },
  },
} as const

/** A service with the built-in processor over the document, and the completed run that extracts its facts. */
export async function tracked<Started extends Pick<Research, 'service' | 'client'>>(
  start: (options: { readonly files: Files; readonly processor: Processor }) => Promise<Started>,
): Promise<Started & { readonly run: string }> {
  const isolated = createIsolated()
  onTestFinished(() => isolated.close())
  let processor: Processor | undefined
  const both = await start({
    files: readme(FIRST, 0),
    processor: {
      run: (task, signal) =>
        (processor ??= extractiveProcessor(both.service.corpus, isolated)).run(task, signal),
    },
  })
  const { run, output } = await both.client.tasks.run({
    input: 'tidelib',
    processor: 'core',
    task_spec: SPEC,
  })
  expect(output?.content).toEqual(FIRST)
  return { ...both, run: run.run_id }
}

/** The facts on each day, and the days on which they changed. */
export function history(): { readonly day: number; readonly before: Facts; readonly after: Facts }[] {
  let facts = FIRST
  return Object.entries(CHANGES).map(([day, changed]) => {
    const before = facts
    facts = { ...facts, ...changed }
    return { day: Number(day), before, after: facts }
  })
}
