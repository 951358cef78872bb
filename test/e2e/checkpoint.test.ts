import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { memoryCheckpointStore, openCheckpoint } from 'rivulet'
import type { Checkpoint, ResearchEvent } from 'rivulet'
import { deliver, ofType } from 'rivulet/operators'
import { sqliteCheckpointStore, sqliteInbox } from 'rivulet/state/sqlite'
import { createWebhookReceiver, signedRequest } from 'rivulet/webhooks'
import { delay, lastValueFrom, retry, take, tap, toArray } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { write } from '../service/corpus/folder.ts'
import { all, research } from './research.ts'

const names = (count: number) => Array.from({ length: count }, (_, n) => `question ${n}`)

/** A state file, and a function that opens its checkpoint. */
async function stateFile() {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-state-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'state.db')
  return { file, open: () => openCheckpoint(sqliteCheckpointStore(file)) }
}

/** The time at which the runs failed. */
const TIME = '2026-01-01T00:00:00.000Z'

/** The id of the failure of a run. */
const failure = (run: string) => `${run}:failed:${TIME}`

/** A receiver that stores webhooks in the state file, opened and closed like a process does. */
async function receiving(file: string, open: () => Promise<Checkpoint>, secrets: string) {
  const inbox = sqliteInbox(file)
  const receiver = createWebhookReceiver({ secrets, inbox })
  const checkpoint = await open()
  /** Sends the webhook of a failed run, and resolves with the status of the response. */
  const post = async (run_id: string) => {
    const run = { run_id, status: 'failed', is_active: false, error: { message: 'no' }, processor: 'base' }
    const data = { ...run, created_at: TIME, modified_at: TIME }
    const payload = { type: 'task_run.status', timestamp: TIME, data }
    const request = await signedRequest('http://x.example/', payload, { secrets })
    return (await receiver.handle(request)).status
  }
  const close = async () => {
    receiver.close()
    await checkpoint.close()
    inbox.close()
  }
  return { inbox, receiver, checkpoint, post, close }
}

/** Handles a few events and then unsubscribes, like a process that is stopped. */
async function handleSome(events: Observable<ResearchEvent>, checkpoint: Checkpoint, count: number) {
  const handled: string[] = []
  const handler = (event: ResearchEvent) => void handled.push(event.id)
  await lastValueFrom(events.pipe(deliver(handler, { checkpoint, concurrency: 1 }), take(count), toArray()))
  await checkpoint.close()
  return handled
}

describe('a checkpoint', () => {
  it.each([1, 2, 5, 9])('makes watch resume after the %i handled events', async (count) => {
    const { client, group } = await research()
    const id = await group(...names(10))
    const { open } = await stateFile()

    const first = await open()
    const before = await handleSome(client.watch({ taskGroups: [id], checkpoint: first }), first, count)
    const second = await open()
    const after: string[] = []
    await all(
      client
        .watch({ taskGroups: [id], checkpoint: second })
        .pipe(deliver((event) => void after.push(event.id), { checkpoint: second })),
    )
    await second.close()

    const runs = (ids: string[]) => ids.filter((one) => one.endsWith(':completed'))
    expect(new Set([...runs(before), ...runs(after)]).size).toBe(10)
    // Only events that were in flight when the first one unsubscribed may repeat.
    expect(before.length + after.length).toBeLessThanOrEqual(new Set([...before, ...after]).size + 1)
  })

  it('moves past events that the pipeline filters out', async () => {
    const { client, group } = await research()
    const id = await group(...names(5))
    const { open } = await stateFile()
    const first = await open()
    const failed: string[] = []

    await all(
      client.watch({ taskGroups: [id], checkpoint: first }).pipe(
        ofType('task_run.state'),
        deliver((event) => void failed.push(event.id), { checkpoint: first }),
      ),
    )
    await first.close()
    const second = await open()
    const again = await all(
      client.watch({ taskGroups: [id], checkpoint: second }).pipe(deliver(() => {}, { checkpoint: second })),
    )
    await second.close()

    expect(failed).toHaveLength(5)
    expect(again.filter(({ type }) => type === 'task_run.state')).toEqual([])
  })

  it('refuses an operator that delays events, before anything is lost', async () => {
    const { client, group } = await research()
    const id = await group(...names(3))
    const { open } = await stateFile()
    const checkpoint = await open()

    const late = all(
      client.watch({ taskGroups: [id], checkpoint }).pipe(
        delay(1),
        deliver(() => {}, { checkpoint }),
      ),
    )
    await expect(late).rejects.toMatchObject({ name: 'CheckpointError' })
    await checkpoint.close()

    const second = await open()
    const events = await all(
      client.watch({ taskGroups: [id], checkpoint: second }).pipe(deliver(() => {}, { checkpoint: second })),
    )
    await second.close()
    expect(events.filter(({ type }) => type === 'task_run.state')).toHaveLength(3)
  })

  it('does not move past an event on which an operator threw', async () => {
    const { client, group } = await research()
    const id = await group(...names(6))
    const { open } = await stateFile()
    const first = await open()
    let seen = 0
    const throwing = client.watch({ taskGroups: [id], checkpoint: first }).pipe(
      ofType('task_run.state'),
      tap(() => {
        if (++seen === 3) throw new Error('a bug')
      }),
    )
    const before: string[] = []
    const failed = all(throwing.pipe(deliver((event) => void before.push(event.id), { checkpoint: first })))
    await expect(failed).rejects.toThrow('a bug')
    await first.close()

    const second = await open()
    const after: string[] = []
    await all(
      client.watch({ taskGroups: [id], checkpoint: second }).pipe(
        ofType('task_run.state'),
        deliver((event) => void after.push(event.id), { checkpoint: second }),
      ),
    )
    await second.close()
    expect([...before, ...after]).toHaveLength(6)
    expect(new Set([...before, ...after]).size).toBe(6)
  })

  it('loses nothing on a full disk: the pipeline errors, and the next start resumes', async () => {
    const { client, group } = await research()
    const id = await group(...names(40))
    const { file } = await stateFile()
    const database = new DatabaseSync(file)
    onTestFinished(() => database.close())
    // A page holds few rows, so that the disk is soon full.
    database.exec('PRAGMA page_size = 1024')
    const pipeline = async (maxPages: number) => {
      const checkpoint = await openCheckpoint(sqliteCheckpointStore(database))
      database.exec(`PRAGMA max_page_count = ${maxPages}`)
      const handled: string[] = []
      const handler = (event: ResearchEvent) => void handled.push(event.id)
      const watched = client.watch({ taskGroups: [id], checkpoint }).pipe(ofType('task_run.state'))
      const delivered = all(watched.pipe(deliver(handler, { checkpoint, concurrency: 1 })))
      const [outcome] = await Promise.allSettled([delivered])
      const [closed] = await Promise.allSettled([checkpoint.close()])
      return { handled, outcome, closed }
    }

    // One page is fewer than the file has, so that it cannot grow.
    const first = await pipeline(1)
    const second = await pipeline(10_000)

    const full = expect.objectContaining({
      name: 'StateFileError',
      message: expect.stringContaining('disk is full'),
    })
    expect(first.outcome).toEqual({ status: 'rejected', reason: full })
    expect(first.closed).toEqual({ status: 'rejected', reason: full })
    expect(first.handled.length).toBeLessThan(40)
    expect(new Set([...first.handled, ...second.handled]).size).toBe(40)
    // Only the event that could not be saved repeats.
    expect(second.handled.filter((one) => first.handled.includes(one))).toEqual(first.handled.slice(-1))
    expect(second.closed.status).toBe('fulfilled')
  })

  it('does not repeat a handled event on a retry in the same process, even if it could not be saved', async () => {
    const { client, group } = await research()
    const id = await group(...names(6))
    const store = memoryCheckpointStore()
    const failed = Promise.withResolvers<void>()
    let saves = 0
    const checkpoint = await openCheckpoint({
      ...store,
      save(changes) {
        if (++saves > 1) return store.save(changes)
        failed.resolve()
        throw new Error('the disk is full')
      },
    })
    const calls: string[] = []
    const handler = async (event: ResearchEvent) => {
      calls.push(event.id)
      if (calls.length > 1) return
      // The stream's position stays here while the next event is handled and cannot be saved.
      await failed.promise
      throw new Error('out of reach')
    }

    await all(
      client
        .watch({ taskGroups: [id], checkpoint })
        .pipe(
          ofType('task_run.state'),
          deliver(handler, { checkpoint, concurrency: 2, retries: 0 }),
          retry({ count: 1, delay: 0 }),
        ),
    )
    await checkpoint.close()

    const [first] = calls
    expect(calls.filter((call) => call !== first)).toHaveLength(5)
    expect(new Set(calls).size).toBe(6)
  })

  it('that is closed is refused with its name', async () => {
    const { client } = await research()
    const { open } = await stateFile()
    const checkpoint = await open()
    await checkpoint.close()

    const watched = client.watch({ taskGroups: ['tgrp'], checkpoint })

    await expect(all(watched.pipe(deliver(() => {}, { checkpoint })))).rejects.toMatchObject({
      name: 'CheckpointError',
      message: expect.stringContaining('is closed'),
    })
  })

  it('refuses a pipeline without a deliver that reports handled events', async () => {
    const { client, group } = await research()
    const id = await group(...names(3))
    const checkpoint = await openCheckpoint(memoryCheckpointStore())

    const watched = client.watch({ taskGroups: [id], checkpoint })

    await expect(all(watched)).rejects.toMatchObject({ name: 'CheckpointError' })
    await expect(all(watched.pipe(deliver(() => {})))).rejects.toMatchObject({ name: 'CheckpointError' })
  })

  it('refuses a second concurrent subscription', async () => {
    const { client, group } = await research()
    const id = await group(...names(3))
    const checkpoint = await openCheckpoint(memoryCheckpointStore())
    const pipeline = () =>
      client.watch({ taskGroups: [id], checkpoint }).pipe(deliver(() => {}, { checkpoint }))

    const first = all(pipeline())
    await expect(all(pipeline())).rejects.toMatchObject({ name: 'CheckpointError' })
    await first
    await expect(all(pipeline())).resolves.toEqual([])
  })

  it('resumes without completions, even if a completion was the last handled event', async () => {
    const both = await research({ files: { 'old.md': '# Old\n\nNothing of the kind.\n' } })
    const { client, service, docs } = both
    const settled = async (records: number) => {
      while (service.records().monitor_events.length < records)
        await new Promise((resolve) => setImmediate(resolve))
    }
    const settings = { query: 'spring tide' }
    const created = await all(client.monitors.create({ type: 'event_stream', frequency: '1h', settings }))
    const monitor = created[0]?.monitor_id ?? ''
    await settled(1)
    await write(docs, { 'note.md': '# Note\n\nA spring tide was measured.\n' })
    await all(client.monitors.trigger(monitor))
    await settled(2)
    await all(client.monitors.trigger(monitor))
    await settled(3)
    const { open } = await stateFile()

    const follow = async (include_completions: boolean, count: number) => {
      const checkpoint = await open()
      const monitors = [{ id: monitor, pollInterval: 0, include_completions }]
      return handleSome(client.watch({ monitors, checkpoint }), checkpoint, count)
    }
    const before = await follow(true, 3)
    await write(docs, { 'next.md': '# Next\n\nAnother spring tide was measured.\n' })
    await all(client.monitors.trigger(monitor))
    await settled(4)
    const after = await follow(false, 1)

    expect([...before, ...after]).toEqual(service.records().monitor_events.map(({ id }) => id))
  })

  it('emits a webhook again that was not handled when the process ended', async () => {
    const { client, service } = await research()
    const { file, open } = await stateFile()

    const first = await receiving(file, open, service.webhookSecret)
    const answer = await first.post('run_1')
    await first.close()

    const second = await receiving(file, open, service.webhookSecret)
    const { receiver: webhooks, checkpoint } = second
    const [handled] = await handleSome(client.watch({ webhooks, checkpoint }), checkpoint, 1)
    await second.close()

    expect(answer).toBe(204)
    expect(handled).toBe(failure('run_1'))
  })

  it('emits webhooks again in the same process when a handler failed and the pipeline is retried', async () => {
    const { client, service } = await research()
    const { file, open } = await stateFile()
    const {
      receiver: webhooks,
      checkpoint,
      inbox,
      post,
      close,
    } = await receiving(file, open, service.webhookSecret)
    for (const run of ['run_1', 'run_2', 'run_3']) await post(run)
    const calls: string[] = []
    const handler = ({ id }: ResearchEvent) => {
      calls.push(id)
      if (id === failure('run_2') && calls.length === 2) throw new Error('out of reach')
    }

    const handled = await lastValueFrom(
      client
        .watch({ webhooks, checkpoint })
        .pipe(deliver(handler, { checkpoint, concurrency: 1, retries: 0 }), retry(1), take(3), toArray()),
    )
    inbox.rewind()
    const left = inbox.take()
    await close()

    expect(calls).toEqual(['run_1', 'run_2', 'run_2', 'run_3'].map(failure))
    expect(handled.every(({ via }) => via === 'webhook')).toBe(true)
    expect(left).toBeUndefined()
  })

  it('emits a webhook again on which an operator threw before its handler ran', async () => {
    const { client, service } = await research()
    const { file, open } = await stateFile()
    const { receiver: webhooks, checkpoint, post, close } = await receiving(file, open, service.webhookSecret)
    for (const run of ['run_1', 'run_2', 'run_3']) await post(run)
    let seen = 0
    const calls: string[] = []

    const throwing = client.watch({ webhooks, checkpoint }).pipe(
      tap(() => {
        if (++seen === 2) throw new Error('a bug')
      }),
    )
    await lastValueFrom(
      throwing.pipe(
        deliver(({ id }) => void calls.push(id), { checkpoint, concurrency: 1 }),
        retry(1),
        take(3),
      ),
    )
    await close()

    expect(calls).toEqual(['run_1', 'run_2', 'run_3'].map(failure))
  })
})
