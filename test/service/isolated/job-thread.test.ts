import { describe, expect, it, onTestFinished } from 'vitest'
import { JobThread, type JobThreadOptions } from '../../../src/service/isolated/job-thread.ts'
import type { hostileJobs } from './hostile-worker.ts'

const limit = 30_000

function start(options: Partial<JobThreadOptions> = {}) {
  const file = new URL('./hostile-worker.ts', import.meta.url)
  const thread = new JobThread<typeof hostileJobs>({ file, ...options })
  onTestFinished(() => thread.close())
  return thread
}

describe('a job of the isolated thread', () => {
  it.each(['loop', 'backtrack'] as const)('that exceeds its time is ended: %s', async (name) => {
    const thread = start()
    const ended =
      name === 'loop'
        ? thread.run('loop', undefined, { limit: 50 })
        : thread.run(name, `${'a'.repeat(60)}!`, { limit: 50 })

    await expect(ended).rejects.toMatchObject({ name: 'IsolatedError', kind: 'timeout' })
  })

  it('gets its result although the jobs before it end the thread, with its own time', async () => {
    const thread = start({ memory: 64 })
    const ends = [
      thread.run('loop', undefined, { limit: 300 }),
      thread.run('exit', undefined, { limit }),
      thread.run('fill', undefined, { limit }),
      thread.run('reject', undefined, { limit }),
      thread.run('fail', undefined, { limit }),
      thread.run('result', undefined, { limit }),
    ]
    const echoed = thread.run('echo', 'alive', { limit: 250 })
    const kinds = await Promise.all(ends.map((end) => end.catch(({ kind }) => kind)))

    expect(kinds).toEqual(['timeout', 'crash', 'memory', 'crash', 'failed', 'failed'])
    expect(await echoed).toBe('alive')
  })

  it('has the message of what it throws', async () => {
    await expect(start().run('fail', undefined, { limit })).rejects.toThrow('no such value')
  })

  it('is refused when too many wait, unless it must not be', async () => {
    const thread = start({ maxWaiting: 1 })
    const first = thread.run('echo', 'first', { limit })
    const refused = thread.run('echo', 'second', { limit, isRefusable: true })
    const kept = thread.run('echo', 'third', { limit })

    await expect(refused).rejects.toMatchObject({ kind: 'busy' })
    expect(await Promise.all([first, kept])).toEqual(['first', 'third'])
  })

  it('does not wait for a row of jobs of another kind', async () => {
    const thread = start()
    const order: string[] = []
    const slow = Array.from({ length: 3 }, () =>
      thread.run('loop', undefined, { limit: 30 }).catch(() => order.push('slow')),
    )
    const echoed = thread.run('echo', 'quick', { limit }).then((text) => order.push(text))
    await Promise.all([...slow, echoed])

    expect(order).toEqual(['slow', 'quick', 'slow', 'slow'])
  })

  it('is given up with its signal, while it waits and while it is executed', async () => {
    const thread = start()
    const leaving = new AbortController()
    const { signal } = leaving
    const running = thread.run('loop', undefined, { limit: 200, signal })
    const waiting = thread.run('echo', 'x', { limit, signal })
    leaving.abort(new Error('gone'))

    await expect(running).rejects.toThrow('gone')
    await expect(waiting).rejects.toThrow('gone')
    await expect(thread.run('echo', 'x', { limit, signal })).rejects.toThrow('gone')
    expect(await thread.run('echo', 'after', { limit })).toBe('after')
  })

  it('is rejected when the thread is closed, and so are later ones', async () => {
    const thread = start()
    const all = [thread.run('loop', undefined, { limit }), thread.run('echo', 'x', { limit })]
    const kinds = Promise.all(all.map((end) => end.catch(({ kind }) => kind)))
    await thread.close()

    expect(await kinds).toEqual(['closed', 'closed'])
    await expect(thread.run('echo', 'x', { limit })).rejects.toMatchObject({ kind: 'closed' })
  })

  it('is rejected once jobs are refused, also while it is executed; one that must not be refused has its result', async () => {
    const thread = start()
    const refusable = { limit, isRefusable: true }
    const running = thread.run('loop', undefined, refusable)
    const waiting = thread.run('echo', 'x', refusable)
    const kept = thread.run('echo', 'kept', { limit })
    thread.refuse()
    const later = thread.run('echo', 'x', refusable)
    const refused = [running, waiting, later].map((job) => job.catch(({ kind }) => kind))

    expect(await Promise.all(refused)).toEqual(['closed', 'closed', 'closed'])
    expect(await kept).toBe('kept')
    expect(await thread.run('echo', 'after', { limit })).toBe('after')
  })

  it('is rejected with all that wait when the thread cannot start', async () => {
    const thread = start({ file: new URL('./none.ts', import.meta.url) })
    const all = [thread.run('echo', 'a', { limit }), thread.run('echo', 'b', { limit })]

    expect(await Promise.all(all.map((end) => end.catch(({ kind }) => kind)))).toEqual(['crash', 'crash'])
  })
})
