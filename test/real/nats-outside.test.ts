import { expect, it, onTestFinished } from 'vitest'
import { scratchFolder } from '../log/sqlite/scratch.ts'
import { playRound } from '../outside/round.ts'
import { NatsServer } from './nats/server.ts'

it('a log on a NATS server keeps its promises while its users and its operator do what they may', async () => {
  const server = await NatsServer.start()
  onTestFinished(() => server.remove())
  const { findings, events } = await playRound({ folder: scratchFolder(), seed: 11, server }, 4_000)
  expect(findings).toEqual([])
  expect(events).toBeGreaterThan(0)
}, 240_000)
