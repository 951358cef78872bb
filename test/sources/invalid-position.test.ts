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

describe.each(STREAMS)('an invalid saved position of %s', (stream, watched) => {
  it.each(['', 'garbage', '{', '[]', '{}', '{"cursor":5}', '{"mark":null,"time":null,"before":[]}'])(
    'errors with the name of the stream, without a request or a save: %j',
    async (position) => {
      const store = memoryCheckpointStore()
      await store.load()
      await store.save({ positions: new Map([[stream, position]]), handled: [] })
      await store.close()
      const saved: CheckpointChanges[] = []
      const recordingStore = {
        ...store,
        save(changes: CheckpointChanges) {
          saved.push(changes)
          return store.save(changes)
        },
      }
      const requested: (string | undefined)[] = []
      const baseUrl = await serve((request, response) => {
        requested.push(request.url)
        answer(response, { events: [] })
      })
      const checkpoint = await openCheckpoint(recordingStore)
      const events = createClient({ baseUrl, apiKey: 'key' }).watch({ ...watched, checkpoint })

      const handled = lastValueFrom(events.pipe(deliver(() => {}, { checkpoint })))

      await expect(handled).rejects.toMatchObject({
        name: 'CheckpointError',
        message: expect.stringContaining(stream),
      })
      await checkpoint.close()
      expect({
        saved,
        requested: requested.filter((path) => path?.includes(stream.replace('groups/g/', ''))),
      }).toEqual({
        saved: [],
        requested: [],
      })
    },
  )
})
