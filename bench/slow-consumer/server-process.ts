/** Runs the server in a separate process: sends its address, and its records on request. */
import { createServer } from 'node:http'
import { GroupServer } from './group-server.ts'

const [events, bytes] = process.argv.slice(2).map(Number)
const groups = new GroupServer({ events: events ?? 0, bytes: bytes ?? 1 })
const server = createServer(groups.listener).listen(0, '127.0.0.1', () => process.send?.(server.address()))

process.once('message', () => process.send?.({ written: groups.written, heldBack: groups.heldBack }))
process.once('disconnect', () => process.exit())
