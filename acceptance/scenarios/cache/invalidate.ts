import type { Answer } from '../../support/answer.ts'
import type { Client } from '../../support/client.ts'
import { same, status } from '../../support/expect.ts'

/** What an operator posts to put entries out of date. */
export function postTags(admin: Client, body: string, type = 'application/json'): Promise<Answer> {
  return admin.send('POST', '/cache/invalidate', { 'content-type': type }, body)
}

export async function invalidate(admin: Client, ...tags: string[]): Promise<void> {
  const answer = await postTags(admin, JSON.stringify({ tags }))
  status(answer, 200)
  same(answer.body, JSON.stringify({ invalidated: tags.length }), 'the body')
}
