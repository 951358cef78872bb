import { once } from 'node:events'
import { expect, it, vi } from 'vitest'
import type { TaskRun } from '../../src/protocol/task.ts'
import { markedResult, markedText } from '../../src/tools/marked-result.ts'
import type { Research } from '../../src/tools/research.ts'
import { researchTools } from '../../src/tools/research-tools.ts'

const RUN: TaskRun = {
  run_id: 'trun_1',
  status: 'completed',
  is_active: false,
  processor: 'base',
  metadata: {},
  created_at: '2026-01-01T00:00:00Z',
  modified_at: '2026-01-01T00:00:00Z',
}

const unused = () => Promise.reject(new Error('not used'))

it('a call reports no progress after its result, and leaves no stream open', async () => {
  const streamed = Promise.withResolvers<AbortSignal>()
  const research: Research = {
    search: unused,
    extract: unused,
    tasks: {
      create: async () => RUN,
      get: async () => RUN,
      result: async () => ({ run: RUN, output: { type: 'text', content: 'x', basis: [] } }),
      async *events(_, { signal = AbortSignal.abort() } = {}) {
        streamed.resolve(signal)
        if (!signal.aborted) await once(signal, 'abort')
        yield { type: 'task_run.progress', data: { message: 'late' } }
      },
    },
    findAll: {
      create: unused,
      result: unused,
      events: async function* () {},
    },
  }
  const report = vi.fn<(fraction: number, message: string) => void>()
  const tool = researchTools(research, true).find(({ name }) => name === 'research')
  const { signal } = new AbortController()
  const { value } = (await tool?.run({ input: 'x' }, { signal, report })) ?? {}

  expect(value).toMatchObject({ run: { run_id: 'trun_1' }, output: { content: 'x' } })
  expect((await streamed.promise).aborted).toBe(true)
  await new Promise(setImmediate)
  expect(report).not.toHaveBeenCalled()
})

it('the result of a run that has completed is returned also when there is no time to wait for it', async () => {
  let calls = 0
  const research: Research = {
    search: unused,
    extract: unused,
    tasks: {
      create: unused,
      get: async () => RUN,
      // As over a connection, which is slower than a timeout of 0. A call without a limit gets it.
      async result(_, { signal = AbortSignal.abort() } = {}) {
        calls += 1
        if (calls === 1 && !signal.aborted) await once(signal, 'abort')
        signal.throwIfAborted()
        return { run: RUN, output: { type: 'text', content: 'x', basis: [] } }
      },
      events: async function* () {},
    },
    findAll: { create: unused, result: unused, events: async function* () {} },
  }
  const tool = researchTools(research, false).find(({ name }) => name === 'research_status')
  const { signal } = new AbortController()
  const result = await tool?.run({ run_id: 'trun_1', timeout: 0 }, { signal, report: undefined })

  expect(result).toMatchObject({ value: { output: { content: 'x' } } })
})

it('the state of two runs at once is refused, since one of them would be left out', async () => {
  const research: Research = {
    search: unused,
    extract: unused,
    tasks: { create: unused, get: unused, result: unused, events: async function* () {} },
    findAll: { create: unused, result: unused, events: async function* () {} },
  }
  const tool = researchTools(research, false).find(({ name }) => name === 'research_status')
  const call = { signal: new AbortController().signal, report: undefined }

  await expect(tool?.run({ run_id: 'trun_1', findall_id: 'findall_1' }, call)).rejects.toThrow(
    'findall_id must be absent when run_id is given',
  )
})

it('a result that is nested too deep is cut, and says so', () => {
  const nested = JSON.parse(`${'{"a":'.repeat(50)}"deep"${'}'.repeat(50)}`)
  const { text, structured } = markedResult(nested)

  expect(text).not.toContain('deep')
  for (const shown of [text, structured['notice']]) expect(shown).toContain('are cut')
  expect(markedResult({ a: 'flat' }).text).not.toContain('are cut')
  expect(markedText('x'.repeat(80_001))).toContain('are cut')
})

it('a result has no half of a surrogate pair, which parsers of other languages refuse', () => {
  const { text, structured } = markedResult({ '\uD83D': '\uDE00', long: `x${'😀'.repeat(50_000)}` })

  for (const shown of [text, JSON.stringify(structured), markedText(`x${'😀'.repeat(50_000)}`)]) {
    expect(shown).not.toMatch(/\\u[dD][89a-fA-F]/)
    expect(shown.isWellFormed()).toBe(true)
  }
})
