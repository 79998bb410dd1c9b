import dev.langchain4j.data.message.*;
import dev.langchain4j.data.image.*;
import dev.langchain4j.agent.tool.*;
import java.util.*;
public class LangChain4j { public static void main(String[] a) throws Exception {
 if (a.length > 0) { // reads what it wrote
   System.out.println(ChatMessageDeserializer.messagesFromJson(new String(System.in.readAllBytes())).size()); return; }
 List<ChatMessage> l = List.of(SystemMessage.from("be brief"), UserMessage.from("ada","weather in Oslo?"),
  AiMessage.from(ToolExecutionRequest.builder().id("c1").name("weather").arguments("{\"city\":\"Oslo\"}").build()),
  ToolExecutionResultMessage.from("c1","weather","sunny"),
  UserMessage.from(TextContent.from("and this?"), ImageContent.from("iVBORw0KGgo=","image/png")),
  AiMessage.from("a picture"));
 System.out.println(ChatMessageSerializer.messagesToJson(l)); } }
