import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { OTHERS, READS } from './durable-streams-cases.ts'
import { streamServer } from './durable-streams-server.ts'

const FOLDER = resolve(import.meta.dirname, 'durable-streams')

/** How long a long poll waits, in ms. Some cases wait for its end. */
const LONG_POLL = 500

/** A case of the conformance tests, as Vitest reports it. */
interface Case {
  readonly group: string
  readonly title: string
  readonly status: string
  readonly failure: string
}

/** Runs the cases whose names match, with the Vitest of the conformance tests. The others are reported as skipped. */
async function run(url: string, names: RegExp): Promise<readonly Case[]> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-conformance-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const report = join(folder, 'report.json')
  const { NODE_OPTIONS: _, ...env } = process.env
  await promisify(execFile)(
    process.execPath,
    [
      join(FOLDER, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--reporter=json',
      `--outputFile=${report}`,
      `--testNamePattern=${names.source}`,
    ],
    { cwd: FOLDER, env: { ...env, STREAMS_URL: url, STREAMS_LONG_POLL: `${LONG_POLL}` } },
    // It ends with 1 when a case fails, and the report says which one.
  ).catch(() => undefined)
  const { testResults }: Report = JSON.parse(await readFile(report, 'utf8'))
  return testResults.flatMap(({ assertionResults }) =>
    assertionResults.map(({ ancestorTitles, title, status, failureMessages }) => ({
      group: ancestorTitles.join(' '),
      title,
      status,
      failure: failureMessages.join('\n'),
    })),
  )
}

/** What Vitest writes, of which this is used. */
interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[]
      readonly title: string
      readonly status: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

const reads = Object.entries(READS).flatMap(([group, titles]) => titles.map((title) => `${group} ${title}`))
const others = Object.values(OTHERS).flat()
const isOther = (each: Case) =>
  others.some(([group, title]) => group === each.group && (title === undefined || title === each.title))

describe('the log of a gateway', () => {
  it('passes the cases of the public conformance tests of Durable Streams that read', async () => {
    const names = reads.map((name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    const cases = await run(await streamServer(LONG_POLL), new RegExp(`^(?:${names.join('|')})$`))
    const chosen = cases.filter(({ group, title }) => reads.includes(`${group} ${title}`))

    expect(chosen.filter(({ status }) => status !== 'passed')).toEqual([])
    expect(chosen.map(({ group, title }) => `${group} ${title}`).toSorted()).toEqual(reads.toSorted())
    // A case of a later version is either a read or has a reason not to be.
    expect(cases.filter((each) => !chosen.includes(each) && !isOther(each))).toEqual([])
    expect(
      others.filter(
        ([group, title]) =>
          !cases.some((each) => each.group === group && (title ?? each.title) === each.title),
      ),
    ).toEqual([])
  }, 180_000)
})
