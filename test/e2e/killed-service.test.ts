import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { verifySignature } from 'rivulet/webhooks'
import { expect, it, onTestFinished } from 'vitest'
import { randomOf } from '../../bench/random.ts'
import { append } from '../log/append.ts'
import { openLog, scratchFolder } from '../log/sqlite/scratch.ts'
import { bareRun, fullRun } from '../operators/events.ts'
import { Receiver } from '../rules/notify/requests.ts'
import type { Received } from '../rules/notify/requests.ts'
import { programFiles } from '../support/programs.ts'

const fileOf = await programFiles()
const execArgv = ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning']

const KILLS = 30
const ORDERS = 600

/** What a receiver knows of a request without this library: the identity in its body, and whether its key is the one of that identity. */
const identityOf = ({ body }: Received): string => {
  const { source, id, revision } = JSON.parse(body)
  return JSON.stringify([source, id, revision])
}
const isRefused = (received: Received) => identityOf(received).includes('bad')

it(
  'stores each of its orders once, in batches, and posts each entry at least once, and once by its webhook-id, wherever it is killed',
  { timeout: 180_000 },
  async () => {
    const random = randomOf(20_261_129)
    const folder = scratchFolder()
    const [file, effects] = [join(folder, 'log.db'), join(folder, 'effects.db')]
    const store = openLog(file)
    await append(store, [bareRun('r'), fullRun('r')])

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
    const start = () => {
      const args = [file, effects, receiver.url, String(ORDERS)]
      const child = fork(fileOf('test/e2e/killed-service-process.ts'), args, { execArgv })
      onTestFinished(() => void child.kill('SIGKILL'))
      return child
    }
    for (let kills = 0; kills < KILLS; kills++) {
      const child = start()
      let left = 1 + Math.floor(random() * 25)
      onRequest = () => void (--left === 0 && child.kill('SIGKILL'))
      const [, signal]: unknown[] = await once(child, 'exit')
      expect(signal).toBe('SIGKILL')
    }
    onRequest = () => {}
    const last = start()
    // From here on, the tables alone say what has happened.
    const database = new DatabaseSync(file, { timeout: 5_000 })
    database.exec(`ATTACH '${effects}' AS effects`)
    onTestFinished(() => database.close())
    const column = (sql: string) =>
      database
        .prepare(sql)
        .all()
        .map((row) => String(Object.values(row)[0]))
    const givenUp = (consumer: string) =>
      column(`SELECT event ->> '$.id' FROM rivulet_dead_letter WHERE reader = 'consumer:${consumer}'`)
    const orders = Array.from({ length: ORDERS }, (_, n) => `${n % 30 === 7 ? 'bad' : 'good'}${n}`)
    const [good, bad] = [true, false].map((isGood) => orders.filter((id) => id.startsWith('good') === isGood))
    const identities = (requests: readonly Received[]) => new Set(requests.map(identityOf))
    const isOver = () =>
      column('SELECT id FROM stored').length >= (good?.length ?? 0) &&
      givenUp('rows').length === bad?.length &&
      givenUp('http').length === bad?.length &&
      identities(accepted).size === (good?.length ?? 0) + 2
    while (!isOver()) await turn()
    last.send('stop')
    const [code]: unknown[] = await once(last, 'exit')
    expect(code).toBe(0)

    expect(
      column("SELECT event ->> '$.id' FROM rivulet_entry WHERE type = 'order.placed'").toSorted(),
    ).toEqual(orders.toSorted())
    expect(column('SELECT id FROM stored').toSorted()).toEqual(good?.toSorted())
    expect(givenUp('rows').toSorted()).toEqual(bad?.toSorted())
    expect(givenUp('http').toSorted()).toEqual(bad?.toSorted())
    // A `log.tick` may be recorded after the cursors.
    const [end] = column("SELECT max(position) FROM rivulet_entry WHERE type <> 'log.tick'")
    expect(
      column(
        `SELECT name || ' ' || acknowledged FROM rivulet_reader WHERE name LIKE 'consumer:%' AND cursor >= ${end}`,
      ).toSorted(),
    ).toEqual(['consumer:http []', 'consumer:rows []'])

    const keyed = (requests: readonly Received[]) =>
      new Map(requests.map((request) => [String(request.headers['webhook-id']), identityOf(request)]))
    expect(keyed(accepted).size).toBe(identities(accepted).size)
    expect(new Set(keyed(accepted).values()).size).toBe(identities(accepted).size)
    expect(keyed(refused).size).toBe(bad?.length)
    // Answers were lost, and the process was killed before others.
    expect(accepted.length).toBeGreaterThan(identities(accepted).size)
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
  },
)
