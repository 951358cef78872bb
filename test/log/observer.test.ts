import { setImmediate as turn } from 'node:timers/promises'
import { memoryStore, openLog } from 'rivulet/log'
import { ProcessError } from 'rivulet/streams'
import type { Entry, LogObserver } from 'rivulet/log'
import { describe, expect, it, onTestFinished } from 'vitest'
import { research } from '../e2e/research.ts'
import { change } from '../operators/events.ts'
import { append } from './append.ts'

/** Resolves once the condition holds. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn()
}

async function recordedGroup(observer: LogObserver, ...inputs: string[]) {
  const { client, group } = await research()
  const log = await openLog(memoryStore())
  onTestFinished(() => log.close())
  const remove = log.observe(observer)
  const id = await group(...inputs)
  const record = () => log.record({ client, taskGroups: [id] }).done
  await record()
  return { log, record, remove }
}

describe('an observer of a log', () => {
  it('is called around each append, with what was appended', async () => {
    const appended: { given: number; entries: number; duplicates: number }[] = []
    const { record, remove } = await recordedGroup(
      {
        async append(given, proceed) {
          const { entries, duplicates } = await proceed()
          appended.push({ given: given.length, entries, duplicates })
          return { entries, duplicates, ahead: 0, end: '' }
        },
      },
      'a',
      'b',
    )
    const total = (key: 'given' | 'entries') => appended.reduce((sum, each) => sum + each[key], 0)

    expect(total('entries')).toBeGreaterThanOrEqual(2)
    expect(appended.every(({ given, entries, duplicates }) => given === entries + duplicates)).toBe(true)
    const before = appended.length
    remove()
    await record()
    expect(appended).toHaveLength(before)
  })

  it('is called around each call of a handler, retries included, from the moment it was added', async () => {
    const { log } = await recordedGroup({}, 'a')
    const calls: string[] = []
    const { promise, resolve } = Promise.withResolvers<Entry>()
    let attempts = 0
    const job = log.consume('c', { types: ['task_run.state'], initialDelay: 0 }, async (entry) => {
      attempts += 1
      calls.push('handler')
      if (attempts === 1) throw new Error('at first')
      resolve(entry)
    })
    log.observe({
      handle(consumer, { type }, proceed) {
        calls.push(`before ${consumer} ${type}`)
        return proceed()
      },
    })
    await promise
    await job.stop()

    expect(calls).toEqual(['before c task_run.state', 'handler', 'before c task_run.state', 'handler'])
  })

  it('is within an observer that was added before', async () => {
    const calls: string[] = []
    const around = (name: string): LogObserver => ({
      async append(_, proceed) {
        calls.push(`${name} begins`)
        const appended = await proceed()
        calls.push(`${name} ends`)
        return appended
      },
    })
    const { client, group } = await research()
    const log = await openLog(memoryStore())
    onTestFinished(() => log.close())
    log.observe(around('outer'))
    log.observe({})
    log.observe(around('inner'))
    await log.record({ client, taskGroups: [await group('a')] }).done

    expect(calls.slice(0, 4)).toEqual(['outer begins', 'inner begins', 'inner ends', 'outer ends'])
  })

  it('is called around each function of a process, with what it fails with', async () => {
    const store = memoryStore()
    const log = await openLog(store)
    onTestFinished(() => log.close())
    await append(store, [change('1'), change('2'), change('3')])
    const calls: string[] = []
    log.observe({
      handle(reader, { id }, proceed, kind) {
        try {
          proceed()
          calls.push(`${kind} ${reader} ${id}`)
        } catch (error) {
          calls.push(`${id}: ${error instanceof ProcessError}`)
          throw error
        }
      },
    })
    const process = log.process('p', {
      version: 1,
      key: ({ source }) => source,
      init: () => ({ seen: 0 }),
      event: ({ seen }, { id }, context) => {
        if (id === '2') throw new TypeError('not two')
        context.set({ seen: seen + 1 })
        context.timer('again', 0)
      },
      timer: () => {},
      onError: 'dead-letter',
    })
    await until(async () => (await log.stats()).readers[0]?.lag.entries === 0)
    expect(await process.snapshot()).toMatchObject({ state: new Map([['/v1/monitors/m', { seen: 2 }]]) })
    // The timer of the first entry fires at the second one.
    expect(calls).toEqual(['process p 1', 'process p 2', '2: true', 'process p 3'])
  })

  describe.each<readonly [string, LogObserver]>([
    [
      'throws before',
      {
        append: () => {
          throw new Error('broken')
        },
        handle: () => {
          throw new Error('broken')
        },
      },
    ],
    [
      'throws after',
      {
        append: (_, proceed) => {
          void proceed()
          throw new Error('broken')
        },
        handle: (_, _entry, proceed) => {
          void proceed()
          throw new Error('broken')
        },
      },
    ],
    [
      'rejects after',
      {
        async append(_, proceed) {
          await proceed()
          throw new Error('broken')
        },
        async handle(_, _entry, proceed) {
          await proceed()
          throw new Error('broken')
        },
      },
    ],
    [
      'calls it twice',
      {
        append: (_, proceed) => {
          void proceed()
          return proceed()
        },
        handle: (_, _entry, proceed) => {
          void proceed()
          return proceed()
        },
      },
    ],
    [
      'never calls it',
      {
        append: () => new Promise(() => {}),
        handle: () => new Promise(() => {}),
      },
    ],
  ])('that %s', (_, observer) => {
    it('breaks no append, no handler and no process', async () => {
      const { log } = await recordedGroup(observer, 'a')
      const { entries } = await log.stats()
      expect(entries).toBeGreaterThanOrEqual(1)
      const seen: string[] = []
      const job = log.consume('c', { concurrency: 1 }, async ({ id }) => void seen.push(id))
      const process = log.process('p', {
        version: 1,
        key: () => 'all',
        init: () => 0,
        event: (count, _entry, context) => context.set(count + 1),
      })
      await until(
        async () => (await log.stats()).readers.every(({ lag }) => lag.entries === 0) && seen.length > 0,
      )
      expect(seen).toHaveLength(entries)
      expect(await process.get('all')).toBe(entries)
      await job.stop()
    })
  })

  it('shares one call of a lazy thenable with the consumer', async () => {
    const { log } = await recordedGroup({}, 'a')
    log.observe({ handle: async (_, _entry, proceed) => void (await proceed()) })
    let queries = 0
    const { promise, resolve } = Promise.withResolvers<void>()
    const query: PromiseLike<string> = {
      // oxlint-disable-next-line unicorn/no-thenable -- It is what is tested.
      then(onFulfilled, onRejected) {
        queries += 1
        resolve()
        return Promise.resolve('row').then(onFulfilled, onRejected)
      },
    }
    const job = log.consume('c', { types: ['task_run.state'] }, () => query)
    await promise
    await job.stop()
    expect(queries).toBe(1)
  })
})
