export { Gate, throughGate } from './gate.ts'
