import { ArgumentError } from 'rivulet'
import { memoryInbox } from 'rivulet/webhooks'
import type { WebhookDelivery } from 'rivulet/webhooks'
import { describe, expect, it } from 'vitest'

const HOUR = 3_600_000

function delivery(id: string): WebhookDelivery {
  return { id, timestamp: 1_760_000_000, payload: { for: id } }
}

describe('memoryInbox', () => {
  it('hands out what was put, oldest first, each once', async () => {
    const inbox = memoryInbox()
    await inbox.put(delivery('a'))
    await inbox.put(delivery('b'))

    const taken = [inbox.take(), inbox.take(), inbox.take()]

    expect(taken).toEqual([delivery('a'), delivery('b'), undefined])
  })

  it('knows a duplicate while the first copy waits, and after it was handed out', async () => {
    const inbox = memoryInbox()
    const first = await inbox.put(delivery('a'))
    const whileWaiting = await inbox.put(delivery('a'))
    inbox.take()
    const afterwards = await inbox.put(delivery('a'))

    expect([first, whileWaiting, afterwards]).toEqual(['stored', 'duplicate', 'duplicate'])
    expect(inbox.take()).toBeUndefined()
  })

  it('stores one of two copies that are put at the same time', async () => {
    const inbox = memoryInbox()

    const outcomes = await Promise.all([inbox.put(delivery('a')), inbox.put(delivery('a'))])

    expect(outcomes).toEqual(['stored', 'duplicate'])
  })

  it('is full at its bound, forgets what it turned away, and has room again once one was taken', async () => {
    const inbox = memoryInbox({ maxPending: 1 })
    await inbox.put(delivery('a'))

    expect(await inbox.put(delivery('b'))).toBe('full')
    expect(await inbox.put(delivery('a'))).toBe('duplicate')
    inbox.take()
    expect(await inbox.put(delivery('b'))).toBe('stored')
  })

  it('says beforehand for whom it has no room: for no duplicate', async () => {
    const inbox = memoryInbox({ maxPending: 1 })
    const empty = inbox.isFull?.('a')
    await inbox.put(delivery('a'))
    const full = [inbox.isFull?.('a'), inbox.isFull?.('b')]
    inbox.take()

    expect([empty, full, inbox.isFull?.('b')]).toEqual([false, [false, true], false])
  })

  it('remembers an id for 48 hours, and no longer than twice that', async () => {
    let now = 0
    const inbox = memoryInbox({ clock: () => now })
    await inbox.put(delivery('a'))
    const outcomes: Record<number, string> = {}
    for (const hours of [24, 47.9, 48.1, 95.9]) {
      now = hours * HOUR
      outcomes[hours] = await inbox.put(delivery('a'))
    }
    now = 97 * HOUR
    outcomes[97] = await inbox.put(delivery('a'))

    expect(outcomes).toEqual({
      24: 'duplicate',
      47.9: 'duplicate',
      48.1: 'duplicate',
      95.9: 'duplicate',
      97: 'stored',
    })
  })

  it('remembers an id for the whole time also when it came late in its generation', async () => {
    let now = 0
    const inbox = memoryInbox({ clock: () => now })
    now = 47 * HOUR
    await inbox.put(delivery('late'))
    now = 49 * HOUR
    await inbox.put(delivery('next'))
    now = (47 + 48) * HOUR

    expect(await inbox.put(delivery('late'))).toBe('duplicate')
  })

  it('keeps at least half and at most all of maxIds', async () => {
    const maxIds = 100
    const inbox = memoryInbox({ maxIds, maxPending: 50 })
    const ids = Array.from({ length: 1_000 }, (_, i) => `id-${i}`)
    for (const id of ids) {
      await inbox.put(delivery(id))
      inbox.take()
    }

    const known = await Promise.all(ids.slice(-50).map((id) => inbox.put(delivery(id))))
    const forgotten = await inbox.put(delivery('id-850'))

    expect(new Set(known)).toEqual(new Set(['duplicate']))
    expect(forgotten).toBe('stored')
  })

  it.each([
    ['maxPending', { maxPending: 0 }],
    ['maxIds', { maxPending: 10, maxIds: 19 }],
    ['remember', { remember: -1 }],
  ])('refuses a wrong %s at the call', (argument, options) => {
    expect(() => memoryInbox(options)).toThrow(expect.objectContaining({ argument, name: 'ArgumentError' }))
    expect(() => memoryInbox(options)).toThrow(ArgumentError)
  })
})
