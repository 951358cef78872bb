import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import type { ResearchEvent } from 'rivulet'
import { openLog } from 'rivulet/log'
import { verifySignature } from 'rivulet/webhooks'
import { expect, it, onTestFinished } from 'vitest'
import { randomOf } from '../../../bench/random.ts'
import { append } from '../../log/append.ts'
import { scratchFile, openLog as openStore } from '../../log/sqlite/scratch.ts'
import { bareRun, change, fullRun } from '../../operators/events.ts'
import { Receiver } from '../../rules/notify/requests.ts'
import type { Received } from '../../rules/notify/requests.ts'
import { programFiles } from '../../support/programs.ts'

const fileOf = await programFiles()
const execArgv = ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning']

/** What a receiver knows of a request without this library: the identity in its body, and whether its key is the one of that identity. */
const identityOf = ({ body }: Received): string => {
  const { source, id, revision } = JSON.parse(body)
  return JSON.stringify([source, id, revision])
}
const isRefused = (received: Received) => identityOf(received).includes('bad')

it(
  'posts each entry at least once, and once by its webhook-id, wherever its process is killed',
  { timeout: 120_000 },
  async () => {
    const random = randomOf(20_261_129)
    const file = scratchFile()
    const store = openStore(file)
    const events = Array.from({ length: 300 }, (_, n) => change(`${n % 30 === 7 ? 'bad' : 'good'}${n}`))
    const all: readonly ResearchEvent[] = [...events, bareRun('r'), fullRun('r')]
    for (let n = 0; n < all.length; n += 200) await append(store, all.slice(n, n + 200))

    const accepted: Received[] = []
    const refused: Received[] = []
    let onRequest: () => void = () => {}
    const receiver = await Receiver.start((response, received, request) => {
      onRequest()
      const luck = random()
      if (luck < 0.1) return response.writeHead(503, { 'retry-after': '0' }).end()
      if (luck < 0.2) return request.socket.destroy()
      if (isRefused(received)) {
        refused.push(received)
        return response.writeHead(422).end()
      }
      accepted.push(received)
      // Some answers get lost after they have had their effect.
      return luck < 0.3 ? request.socket.destroy() : response.writeHead(204).end()
    })
    const log = await openLog(store)
    onTestFinished(() => log.close())
    const isRead = async () => {
      const { newest, readers } = await log.stats()
      const oldest = readers.find(({ name }) => name === 'http')?.oldestUnacknowledged
      return oldest === null && newest !== null
    }

    for (let kills = 0; kills < 6; kills++) {
      const child = fork(fileOf('test/webhooks/sink/sink-process.ts'), [file, receiver.url], { execArgv })
      onTestFinished(() => void child.kill('SIGKILL'))
      let left = 1 + Math.floor(random() * 40)
      onRequest = () => void (--left === 0 && child.kill('SIGKILL'))
      await once(child, 'exit')
    }
    onRequest = () => {}
    const last = fork(fileOf('test/webhooks/sink/sink-process.ts'), [file, receiver.url], { execArgv })
    onTestFinished(() => void last.kill('SIGKILL'))
    while (!(await isRead())) await turn()

    const bad = events.filter(({ id }) => id.includes('bad')).length
    const keyed = (requests: readonly Received[]) =>
      new Map(requests.map((request) => [String(request.headers['webhook-id']), identityOf(request)]))
    expect(new Set(accepted.map(identityOf)).size).toBe(all.length - bad)
    expect(keyed(accepted).size).toBe(all.length - bad)
    expect(new Set(keyed(accepted).values()).size).toBe(all.length - bad)
    expect(keyed(refused).size).toBe(bad)
    expect(await log.deadLetters('http').count()).toBe(bad)
    // Answers were lost, and the process was killed before others.
    expect(accepted.length).toBeGreaterThan(all.length - bad)
    const forged = []
    for (const { headers, body } of accepted) {
      const content = {
        id: String(headers['webhook-id']),
        timestamp: String(headers['webhook-timestamp']),
        body,
      }
      const isValid = await verifySignature(
        content,
        String(headers['webhook-signature']),
        'secret of the sink',
      )
      if (!isValid) forged.push(headers)
    }
    expect(forged).toEqual([])
    last.kill('SIGKILL')
    await once(last, 'exit')
  },
)
