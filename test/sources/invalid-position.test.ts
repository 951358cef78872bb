import { createClient } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { describe, expect, it } from 'vitest'
import { answer, serve } from '../support/serve.ts'

const STREAMS: readonly (readonly [
  string,
  { readonly monitors?: string[]; readonly taskGroups?: string[] },
])[] = [
  ['monitors/m', { monitors: ['m'] }],
  ['groups/g/events', { taskGroups: ['g'] }],
  ['groups/g/runs', { taskGroups: ['g'] }],
]

describe.each(STREAMS)('an invalid position of %s in the log', (stream, recorded) => {
  it.each(['', 'garbage', '{', '[]', '{}', '{"cursor":5}', '{"mark":5,"time":null,"before":[]}'])(
    'fails the recording with the name of the stream, without a request, and is left as it is: %j',
    async (position) => {
      const requested: (string | undefined)[] = []
      const baseUrl = await serve((request, response) => {
        requested.push(request.url)
        answer(response, { events: [] })
      })
      const store = memoryStore()
      const fence = await store.claim(`stream:${stream}`)
      await store.append([{ fence, expect: null, entries: [], position }])
      await store.release(fence)
      await using log = await openLog(store)

      const recording = log.record({ client: createClient({ baseUrl, apiKey: 'key' }), ...recorded })

      await expect(recording.done).rejects.toMatchObject({
        name: 'LogError',
        message: expect.stringContaining(stream),
      })
      expect(await store.streamPositions([fence.name])).toEqual([position])
      const own = requested.filter((path) => path?.includes(stream.replace('groups/g/', '')))
      expect(own).toEqual([])
    },
  )
})
