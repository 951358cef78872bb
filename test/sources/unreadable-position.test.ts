import { lastValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createClient, memoryCheckpointStore, openCheckpoint } from 'rivulet'
import type { CheckpointChanges } from 'rivulet'
import { deliver } from 'rivulet/operators'
import { answer, serve } from '../support/serve.ts'

const STREAMS: readonly (readonly [
  string,
  { readonly monitors?: string[]; readonly taskGroups?: string[] },
])[] = [
  ['monitors/m', { monitors: ['m'] }],
  ['groups/g/events', { taskGroups: ['g'] }],
  ['groups/g/runs', { taskGroups: ['g'] }],
]

describe.each(STREAMS)('a kept position of %s that cannot be read', (stream, watched) => {
  it.each(['', 'tatter', '{', '[]', '{}', '{"cursor":5}', '{"mark":null,"time":null,"before":[]}'])(
    'is refused with the name of the stream, and nothing is asked for or saved: %j',
    async (position) => {
      const store = memoryCheckpointStore()
      await store.load()
      await store.save({ positions: new Map([[stream, position]]), handled: [] })
      await store.close()
      const saved: CheckpointChanges[] = []
      const noting = {
        ...store,
        save(changes: CheckpointChanges) {
          saved.push(changes)
          return store.save(changes)
        },
      }
      const asked: (string | undefined)[] = []
      const baseUrl = await serve((request, response) => {
        asked.push(request.url)
        answer(response, { events: [] })
      })
      const checkpoint = await openCheckpoint(noting)
      const events = createClient({ baseUrl, apiKey: 'key' }).watch({ ...watched, checkpoint })

      const handled = lastValueFrom(events.pipe(deliver(() => {}, { checkpoint })))

      await expect(handled).rejects.toMatchObject({
        name: 'CheckpointError',
        message: expect.stringContaining(stream),
      })
      await checkpoint.close()
      expect({
        saved,
        asked: asked.filter((path) => path?.includes(stream.replace('groups/g/', ''))),
      }).toEqual({
        saved: [],
        asked: [],
      })
    },
  )
})
