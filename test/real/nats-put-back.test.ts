import { openLog } from 'rivulet'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { LogServerError } from '../../src/log/errors.ts'
import { natsLog } from '../../src/log/nats-log.ts'
import type { LogStore } from '../../src/log/store/contract.ts'
import { idsOf, readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { Gate } from './nats/gate.ts'
import { NatsServer } from './nats/server.ts'

const STREAM = 'stream:monitors/m'

let server: NatsServer

beforeEach(async () => {
  server = await NatsServer.start()
})

afterEach(() => server.remove())

function opened(owner: string, url = server.url): LogStore {
  const log = natsLog({ servers: url, name: 'watch', owner, lease: 1_000 })
  onTestFinished(() => log.close())
  return log
}

/** Appends what upstream has from the position of the log on, up to this number. */
async function record(log: LogStore, until: number, stream = STREAM): Promise<number> {
  const fence = await log.claim(stream, { wait: new AbortController().signal })
  const [known = null] = await log.streamPositions([stream])
  const from = Number(known ?? 0) + 1
  const entries = Array.from({ length: until - from + 1 }, (_, n) => ({ event: change(String(from + n)) }))
  const appended = await log.append([{ fence, expect: known, position: String(until), entries }])
  await log.release(fence)
  return appended.entries
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => String(n + 1))

describe('a server that was put back to an earlier state', () => {
  it('ends an open log, and a log that is opened again records what is missing', async () => {
    const log = opened('first')
    await record(log, 5)
    const putBack = await server.backup()
    await record(log, 10)
    await putBack()
    const refused = { message: expect.stringContaining('put back'), retryable: false }
    await expect(record(log, 12)).rejects.toMatchObject(refused)
    await expect(log.positionAt('end')).rejects.toBeInstanceOf(LogServerError)
    await log.close()
    const again = opened('second')
    expect(await record(again, 12)).toBe(7)
    expect(idsOf(await readAll(again))).toEqual(numbers(12))
  })

  it('ends what is under way, and stores nothing of it', async () => {
    const log = opened('first')
    await record(log, 5)
    const putBack = await server.backup()
    await record(log, 10)
    await server.kill()
    const underWay = record(log, 15)
    await Promise.all([expect(underWay).rejects.toBeInstanceOf(LogServerError), putBack()])
    const again = opened('second')
    expect(await record(again, 15)).toBe(10)
    expect(idsOf(await readAll(again))).toEqual(numbers(15))
  })

  it('is noticed as well where another one has written more since', async () => {
    const gate = await Gate.start()
    onTestFinished(() => gate.close())
    gate.target = server.port
    const log = opened('first', `nats://127.0.0.1:${gate.port}`)
    await record(log, 5)
    const putBack = await server.backup()
    await record(log, 10)
    gate.shut()
    await putBack()
    const other = opened('other')
    for (let until = 6; until <= 30; until++) await record(other, until)
    gate.open()
    await expect(record(log, 40)).rejects.toMatchObject({ message: expect.stringContaining('put back') })
    expect(await record(other, 40)).toBe(10)
    expect(idsOf(await readAll(other))).toEqual(numbers(40))
  })

  it('gives a consumer what it has lost once more, from the cursor that the server has', async () => {
    const store = opened('first')
    const log = await openLog(store)
    const handled: string[] = []
    const done = Promise.withResolvers<void>()
    await record(store, 5)
    const job = log.consume('archive', ({ id }) => {
      handled.push(id)
      if (handled.length === 5) done.resolve()
    })
    await done.promise
    await job.stop()
    const putBack = await server.backup()
    await record(store, 10)
    await putBack()
    const failed = log.consume('archive', () => {}).done
    await expect(failed).rejects.toBeInstanceOf(LogServerError)
    const next = await openLog(opened('second'))
    await record(opened('writer'), 12)
    const rest: string[] = []
    await new Promise<void>((resolve) => {
      next.consume('archive', { wait: new AbortController().signal }, ({ id }) => {
        rest.push(id)
        if (id === '12') resolve()
      })
    })
    expect(rest).toEqual(numbers(12).slice(5))
    await next.close()
  })
})
