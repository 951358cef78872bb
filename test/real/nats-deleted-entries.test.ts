import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { natsLog } from '../../src/log/nats-log.ts'
import { append, readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { NatsServer } from './nats/server.ts'

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

describe('a writer to a source whose entries another one appends and trims', () => {
  async function writers(name: string) {
    const [one, other] = ['one', 'other'].map((owner) => natsLog({ servers: server.url, name, owner }))
    if (one === undefined || other === undefined) throw new Error('two logs')
    onTestFinished(async () => {
      await one.close()
      await other.close()
    })
    return { one, other, fence: await one.claim('one'), otherFence: await other.claim('other') }
  }

  it('does not append again what is deleted before an entry that is left', async () => {
    const { one, other, fence, otherFence } = await writers('some')
    await append(one, fence, change('1'))
    await append(other, otherFence, change('2'), change('3'))
    await other.retention.trim({ limit: 2 })
    expect(await append(one, fence, change('2'))).toMatchObject({ entries: 0, duplicates: 1 })
    expect((await readAll(one)).map(({ id }) => id)).toEqual(['3'])
  })

  it('does not append again what is deleted with all entries of the source', async () => {
    const { one, other, fence, otherFence } = await writers('all')
    await append(one, fence, change('1'))
    await append(other, otherFence, change('2'))
    await other.retention.trim({ limit: 2 })
    expect(await append(one, fence, change('2'))).toMatchObject({ entries: 0, duplicates: 1 })
    // Now it knows that the source has no entries, and the other one appends and deletes the next one too.
    await append(other, otherFence, change('3'))
    await other.retention.trim({ limit: 1 })
    expect(await append(one, fence, change('3'))).toMatchObject({ entries: 0, duplicates: 1 })
    expect(await readAll(one)).toEqual([])
  })
})
