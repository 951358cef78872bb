import { systemClock } from 'rivulet/service'
import { lastValueFrom, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { responseText } from 'rivulet'
import { research } from './research.ts'

const messages = [{ role: 'user', content: 'What is a rivulet?' }] as const

describe('answers of the embedded service', () => {
  it('are the same streamed and whole, in a chat', async () => {
    const { client } = await research()

    const progress = await lastValueFrom(client.chat.stream({ model: 'base', messages }).pipe(toArray()))
    const streamed = await client.chat.stream({ model: 'base', messages })
    const { choices, basis } = await client.chat.complete({ model: 'base', messages })

    expect(streamed.choices).toEqual(choices)
    expect(streamed.basis).toEqual(basis)
    expect(streamed.interaction_id).toBeTypeOf('string')
    expect(progress.at(-1)?.text).toBe(choices[0]?.message.content)
  })

  it('are the same streamed and whole, in a response', async () => {
    const { client } = await research()
    const request = { model: 'base', input: 'What is a rivulet?' }

    const progress = await lastValueFrom(client.responses.stream(request).pipe(toArray()))
    const streamed = await client.responses.stream(request)
    const whole = await client.responses.create({ ...request, previous_response_id: streamed.id })

    expect(responseText(whole)).toBe(responseText(streamed))
    expect(progress.at(-1)?.text).toBe(responseText(streamed))
    expect(progress.map(({ event }) => event.type)).not.toContain('unknown')
  })

  it('are given to more searches and chats than the quotas allow at once', async () => {
    const limits = { search: { requests: 2, window: 100 }, chat: { requests: 2, window: 100 } }
    const { client, diagnostics } = await research({
      clock: systemClock(),
      quotas: limits,
      client: { quotas: limits },
    })

    const outcomes = await lastValueFrom(client.search.each(['a', 'b', 'c', 'd', 'e']).pipe(toArray()))
    const chats = await Promise.all(
      [1, 2, 3].map(async () => client.chat.complete({ model: 'base', messages })),
    )

    expect(outcomes.filter(({ error }) => error !== undefined)).toEqual([])
    expect(chats).toHaveLength(3)
    expect(diagnostics.some(({ kind }) => kind === 'quota')).toBe(true)
  })
})
