"""A chat platform that consists of two files: messages to the gateway are read from one, its answers go to the other."""
import asyncio
import json
import os
import uuid

from gateway.config import Platform
from gateway.platforms.base import BasePlatformAdapter, MessageEvent, MessageType, SendResult

INBOX, OUTBOX = os.environ.get("FILECHAT_INBOX", ""), os.environ.get("FILECHAT_OUTBOX", "")


class FileChat(BasePlatformAdapter):
    def __init__(self, config):
        super().__init__(config, Platform("filechat"))
        self.listening = None

    async def connect(self, *, is_reconnect=False):
        self._mark_connected()
        self.listening = asyncio.create_task(self.listen())
        return True

    async def disconnect(self):
        self._mark_disconnected()
        if self.listening:
            self.listening.cancel()

    async def listen(self):
        delivered = 0
        while True:
            lines = []
            if os.path.exists(INBOX):
                with open(INBOX) as inbox:
                    lines = inbox.read().split("\n")[:-1]
            for line in lines[delivered:]:
                message = json.loads(line)
                source = self.build_source(
                    chat_id=message.get("chat", "c1"), chat_type="dm", user_id=message.get("user", "u1"), user_name="tester")
                await self.handle_message(MessageEvent(
                    text=message["text"], message_type=MessageType.TEXT, source=source, message_id=uuid.uuid4().hex))
            delivered = len(lines)
            await asyncio.sleep(0.05)

    async def send(self, chat_id, content, reply_to=None, metadata=None):
        with open(OUTBOX, "a") as outbox:
            outbox.write(json.dumps({"chat": chat_id, "content": content}) + "\n")
        return SendResult(success=True, message_id=uuid.uuid4().hex)

    async def send_typing(self, chat_id, metadata=None):
        return None

    async def get_chat_info(self, chat_id):
        return {"name": chat_id, "type": "dm"}


def register(ctx):
    ctx.register_platform(
        name="filechat", label="FileChat", adapter_factory=FileChat,
        check_fn=lambda: bool(INBOX), validate_config=lambda config: bool(INBOX), is_connected=lambda config: bool(INBOX),
        env_enablement_fn=lambda: {"inbox": INBOX} if INBOX else None,
        allow_all_env="FILECHAT_ALLOW_ALL_USERS", allowed_users_env="FILECHAT_ALLOWED_USERS",
    )
