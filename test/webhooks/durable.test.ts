import { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createWebhookReceiver, memoryInbox, nodeListener, signedRequest } from 'rivulet/webhooks'
import type { Inbox, WebhookReceiver } from 'rivulet/webhooks'
import { firstValueFrom, lastValueFrom, retry, take, tap } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sqliteInbox } from '../../src/state/sqlite.ts'
import { scratchFile } from '../state/scratch.ts'
import { serve } from '../support/serve.ts'
import { sign } from '../support/sign.ts'

const SECRET = 'the account secret'

/** A receiver behind a real server, with its inbox in a file. */
async function endpoint() {
  const file = scratchFile()
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  const inbox = sqliteInbox(db)
  const receiver = createWebhookReceiver({ secrets: SECRET, inbox })
  const url = await serve(nodeListener(receiver))
  onTestFinished(() => {
    receiver.close()
    inbox.close()
    db.close()
  })

  const post = async (id: string): Promise<number> => {
    const body = JSON.stringify({ type: 'task_run.status', data: { run_id: id } })
    const headers = { ...sign({ id, body, secrets: SECRET }) }
    const response = await fetch(url, { method: 'POST', body, headers })
    await response.arrayBuffer()
    return response.status
  }
  return { file, db, inbox, receiver, post }
}

/** Another connection, which sees only committed data. */
function reader(file: string) {
  const db = new DatabaseSync(file)
  onTestFinished(() => db.close())
  const find = db.prepare('SELECT 1 FROM rivulet_inbox WHERE id = ?')
  return { db, has: (id: string) => find.get(id) !== undefined }
}

describe('a receiver with an inbox on disk', () => {
  it('commits a burst in few transactions, each webhook before its response', async () => {
    const { file, db, post } = await endpoint()
    const { has } = reader(file)
    const exec = vi.spyOn(db, 'exec')
    const ids = Array.from({ length: 200 }, (_, i) => `msg_${i}`)

    const answers = await Promise.all(ids.map(async (id) => ({ status: await post(id), stored: has(id) })))

    expect(new Set(answers.map(({ status, stored }) => `${status} ${stored}`))).toEqual(new Set(['204 true']))
    expect(exec.mock.calls.filter(([sql]) => sql === 'COMMIT').length).toBeLessThan(100)
  })

  it('answers 503 while nothing can be stored, and 204 to the next attempt', async () => {
    const { file, post } = await endpoint()
    const { db: other, has } = reader(file)
    other.exec('BEGIN IMMEDIATE')

    const locked = await post('msg_1')
    other.exec('ROLLBACK')
    const kept = has('msg_1')
    const retried = await post('msg_1')

    expect([locked, kept, retried]).toEqual([503, false, 204])
  })

  it('answers 503 on a full disk', async () => {
    const { db, post } = await endpoint()
    db.exec('PRAGMA max_page_count = 1')

    // The existing pages have some free space.
    let status = 204
    for (let i = 0; status === 204 && i < 10_000; i++) status = await post(`msg_${i}`)

    expect(status).toBe(503)
  })

  it('emits committed deliveries, and none again after done', async () => {
    const { receiver, post, db } = await endpoint()
    const handedOut = Promise.withResolvers<string>()
    receiver.deliveries.subscribe(({ id }) => handedOut.resolve(id))

    await post('msg_1')
    const id = await handedOut.promise
    await receiver.done(id)

    expect(db.prepare('SELECT id, done_at IS NOT NULL AS done FROM rivulet_inbox').all()).toEqual([
      { id: 'msg_1', done: 1 },
    ])
  })
})

describe('the only subscriber', () => {
  /** Records what a new subscriber receives. */
  function listen(receiver: WebhookReceiver) {
    const ids: string[] = []
    const subscription = receiver.deliveries.subscribe(({ id }) => ids.push(id))
    return { ids, leave: () => subscription.unsubscribe() }
  }

  it('receives again every delivery that is not done', async () => {
    const { receiver, post } = await endpoint()
    const first = listen(receiver)
    for (const id of ['msg_1', 'msg_2', 'msg_3']) await post(id)
    await nextTurn()
    first.leave()
    await receiver.done('msg_2')

    const second = listen(receiver)
    await nextTurn()

    expect(first.ids).toEqual(['msg_1', 'msg_2', 'msg_3'])
    expect(second.ids).toEqual(['msg_1', 'msg_3'])
  })

  it('that subscribes within a delivery receives that one again first, and each once', async () => {
    const { receiver, post } = await endpoint()
    await post('msg_1')
    await post('msg_2')
    const calls: string[] = []
    const all = receiver.deliveries.pipe(
      tap(({ id }) => {
        if (calls.push(id) === 1) throw new Error('a bug')
      }),
      retry(1),
      take(2),
    )

    await lastValueFrom(all)

    expect(calls).toEqual(['msg_1', 'msg_1', 'msg_2'])
  })

  it('is the only one that receives deliveries again, not a second subscriber', async () => {
    const { receiver, post } = await endpoint()
    const first = listen(receiver)
    await post('msg_1')
    await nextTurn()

    const second = listen(receiver)
    await post('msg_2')
    await nextTurn()

    expect([first.ids, second.ids]).toEqual([['msg_1', 'msg_2'], ['msg_2']])
  })

  it('gets an error when the inbox fails to rewind, which closes the receiver', async () => {
    const failure = new Error('the inbox is gone')
    const inbox: Inbox = {
      ...memoryInbox(),
      rewind() {
        throw failure
      },
    }
    const receiver = createWebhookReceiver({ secrets: SECRET, inbox })

    await expect(firstValueFrom(receiver.deliveries)).rejects.toBe(failure)
    const request = await signedRequest('http://x.example/', {}, { secrets: SECRET })
    expect((await receiver.handle(request)).status).toBe(503)
  })

  it('does not rewind the inbox of a closed receiver, which the next one may use', async () => {
    const { receiver, inbox, post } = await endpoint()
    await post('msg_1')
    receiver.close()
    inbox.take()

    receiver.deliveries.subscribe()

    expect(inbox.take()).toBeUndefined()
  })
})
