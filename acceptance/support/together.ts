import type { Answer } from './answer.ts'
import { answered } from './expect.ts'
import type { Trial } from './trial.ts'

/** Connects a socket for each request, then writes them all in one go, and gives the answers in their order. */
export async function together(trial: Trial, port: number, requests: readonly Buffer[]): Promise<Answer[]> {
  const connections = await Promise.all(requests.map(() => trial.connect(port)))
  for (const [index, connection] of connections.entries()) connection.send(requests[index] as Buffer)
  const answers = await Promise.all(connections.map(connection => connection.read()))
  for (const connection of connections) connection.destroy()
  return answers.map(answered)
}
