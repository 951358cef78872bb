import { memoryLog, openLog } from 'rivulet'
import type { Entry, LogObserver } from 'rivulet'
import { describe, expect, it, onTestFinished } from 'vitest'
import { research } from '../e2e/research.ts'

async function recordedGroup(observer: LogObserver, ...inputs: string[]) {
  const { client, group } = await research()
  const log = await openLog(memoryLog())
  onTestFinished(() => log.close())
  const remove = log.observe(observer)
  const id = await group(...inputs)
  const record = () => client.record({ taskGroups: [id], log }).done
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
          return { entries, duplicates, end: '' }
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
    const log = await openLog(memoryLog())
    onTestFinished(() => log.close())
    log.observe(around('outer'))
    log.observe({})
    log.observe(around('inner'))
    await client.record({ taskGroups: [await group('a')], log }).done

    expect(calls.slice(0, 4)).toEqual(['outer begins', 'inner begins', 'inner ends', 'outer ends'])
  })
})
