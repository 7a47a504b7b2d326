"""A phone that speaks SIP over WebSocket (RFC 7118), by websocket-client.

Registers, calls a number and hears its own tone back, hangs up, is called, is hung up on. Arguments: URL, user,
password, number, and for wss the authority's certificate.
"""

import hashlib
import re
import socket
import sys
import uuid

import websocket

URL, USER, SECRET, NUMBER = sys.argv[1:5]
HOST = f"{uuid.uuid4().hex[:12]}.invalid"
DOMAIN = "pbx.example.com"
VIA = "WSS" if URL.startswith("wss") else "WS"
CONTACT = f"<sip:{USER}@{HOST};transport=ws>"
SECONDS = 20


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


def header(message, name):
    found = re.search(rf"(?im)^{name}:[ \t]*(.*?)\r$", message)
    return found.group(1) if found else ""


def same(message, *names):
    return "".join(f"{line}\r\n" for name in names for line in re.findall(rf"(?im)^{name}:.*?(?=\r$)", message))


class Phone:
    def __init__(self):
        options = {"ca_certs": sys.argv[5], "server_hostname": DOMAIN} if VIA == "WSS" else {}
        self.socket = websocket.create_connection(
            URL, subprotocols=["sip"], sslopt=options, timeout=SECONDS, origin="https://phone.example.com"
        )
        assert self.socket.getsubprotocol() == "sip"
        self.media = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.media.bind((self.socket.sock.getsockname()[0], 0))
        self.media.settimeout(SECONDS)
        self.sequence = 0

    def request(self, method, uri, dialog, more="", body="", pieces=1):
        text = (
            f"{method} {uri} SIP/2.0\r\nVia: SIP/2.0/{VIA} {HOST};branch=z9hG4bK{uuid.uuid4().hex}\r\n"
            f"Max-Forwards: 70\r\nFrom: <sip:{USER}@{DOMAIN}>;tag={dialog['tag']}\r\nTo: {dialog['to']}\r\n"
            f"Call-ID: {dialog['id']}\r\nCSeq: {dialog['sequence']} {method}\r\nContact: {CONTACT}\r\n{more}"
        )
        if body:
            text += "Content-Type: application/sdp\r\n"
        # Without Content-Length: the frame says where the message ends.
        data = (text + "\r\n" + body).encode()
        if pieces == 1:
            self.socket.send(data)
            return
        size = len(data) // pieces + 1
        cuts = [data[at : at + size] for at in range(0, len(data), size)]
        for number, cut in enumerate(cuts):
            opcode = websocket.ABNF.OPCODE_CONT if number else websocket.ABNF.OPCODE_TEXT
            frame = websocket.ABNF.create_frame(cut, opcode, fin=int(number + 1 == len(cuts)))
            self.socket.send_frame(frame)
            self.socket.ping("between")

    def next(self):
        return self.socket.recv()

    def final(self, method):
        """The final response to a request of ours."""
        while True:
            message = self.next()
            if message.startswith("SIP/2.0 ") and header(message, "CSeq").endswith(method):
                if int(message[8:11]) >= 200:
                    return message

    def expect(self, method):
        while True:
            message = self.next()
            if message.startswith(method + " "):
                return message

    def credentials(self, refused, method, uri):
        challenge = header(refused, "WWW-Authenticate")
        realm, nonce = (re.search(rf'{name}="([^"]*)"', challenge).group(1) for name in ("realm", "nonce"))
        proof = md5(f"{USER}:{realm}:{SECRET}")
        proof = md5(f"{proof}:{nonce}:00000001:ws:auth:{md5(f'{method}:{uri}')}")
        return (
            f'Authorization: Digest username="{USER}", realm="{realm}", nonce="{nonce}", uri="{uri}", '
            f'response="{proof}", algorithm=MD5, qop=auth, nc=00000001, cnonce="ws"\r\n'
        )

    def dialog(self, to):
        return {"id": uuid.uuid4().hex, "tag": uuid.uuid4().hex[:8], "to": f"<sip:{to}@{DOMAIN}>", "sequence": 1}

    def register(self):
        dialog, uri = self.dialog(USER), f"sip:{DOMAIN}"
        self.request("REGISTER", uri, dialog, "Expires: 300\r\n")
        refused = self.final("REGISTER")
        assert refused.startswith("SIP/2.0 401"), refused
        dialog["sequence"] += 1
        more = "Expires: 300\r\n" + self.credentials(refused, "REGISTER", uri)
        self.request("REGISTER", uri, dialog, more, pieces=3)
        answer = self.final("REGISTER")
        assert answer.startswith("SIP/2.0 200"), answer
        assert HOST in header(answer, "Contact"), answer

    def description(self):
        address, port = self.media.getsockname()
        return (
            f"v=0\r\no=- 1 1 IN IP4 {address}\r\ns=-\r\nc=IN IP4 {address}\r\nt=0 0\r\n"
            f"m=audio {port} RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"
        )

    def echo(self, description):
        """Sends packets until one of them comes back."""
        address = re.search(r"c=IN IP4 (\S+)", description).group(1)
        port = int(re.search(r"m=audio (\d+)", description).group(1))
        payload = bytes(range(160))
        self.media.settimeout(0.02)
        for sequence in range(1000):
            head = bytes([0x80, 0]) + sequence.to_bytes(2, "big") + (160 * sequence).to_bytes(4, "big") + b"wsws"
            self.media.sendto(head + payload, (address, port))
            try:
                if self.media.recv(2048)[12:] == payload:
                    return
            except TimeoutError:
                pass
        raise AssertionError("nothing comes back")

    def call(self):
        dialog, uri = self.dialog(NUMBER), f"sip:{NUMBER}@{DOMAIN}"
        self.request("INVITE", uri, dialog, body=self.description())
        refused = self.final("INVITE")
        assert refused.startswith("SIP/2.0 401"), refused
        answer_to, dialog["to"] = dialog["to"], header(refused, "To")
        self.request("ACK", uri, dialog)
        dialog["to"], dialog["sequence"] = answer_to, 2
        self.request("INVITE", uri, dialog, self.credentials(refused, "INVITE", uri), self.description())
        answer = self.final("INVITE")
        assert answer.startswith("SIP/2.0 200"), answer
        target = re.search(r"<(.*?)>", header(answer, "Contact")).group(1)
        assert target.endswith(";transport=ws"), answer
        dialog["to"] = header(answer, "To")
        self.request("ACK", target, dialog)
        self.echo(answer)
        dialog["sequence"] = 3
        self.request("BYE", target, dialog)
        answer = self.final("BYE")
        assert answer.startswith("SIP/2.0 200"), answer

    def respond(self, request, status, more="", body=""):
        to = header(request, "To")
        tag = "" if ";tag=" in to else ";tag=callee"
        head = same(request, "Via", "From", "Call-ID", "CSeq", "Record-Route")
        kind = "Content-Type: application/sdp\r\n" if body else ""
        self.socket.send(f"SIP/2.0 {status}\r\n{head}To: {to}{tag}\r\nContact: {CONTACT}\r\n{more}{kind}\r\n{body}")

    def answer(self):
        invite = self.expect("INVITE")
        assert invite.split(" ")[1].startswith(f"sip:{USER}@{HOST}"), invite
        assert header(invite, "Via").startswith(f"SIP/2.0/{VIA} "), invite
        assert ";transport=ws" in header(invite, "Contact"), invite
        self.respond(invite, "180 Ringing")
        self.respond(invite, "200 OK", body=self.description())
        self.expect("ACK")
        self.echo(invite)
        print("up", flush=True)
        self.respond(self.expect("BYE"), "200 OK")


phone = Phone()
phone.register()
print("registered", flush=True)
phone.call()
print("called", flush=True)
phone.answer()
phone.socket.close()
print("over", flush=True)
